"""A ClickHouse server for tests: the embedded engine behind ClickHouse's HTTP interface, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["clickhouse"]

_SHIM = Path(__file__).with_name("clickhouse_shim.py")


@contextmanager
def clickhouse(folder: Path, *tls: Path) -> Iterator[int]:
    """Its port on this machine. The users `viewer` and `writer` have the rights of their names, all others any. `tls`
    is its certificate, the key, and the CA of the clients that it lets in."""
    command = [sys.executable, str(_SHIM), str(folder), *map(str, tls)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
