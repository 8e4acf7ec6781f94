"""A real PostgreSQL for tests: in a folder of its own, at a free port, run by a user who is not root; killed, restarted
and followed by a synchronous standby at will.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_ports
from tests.support.waiting import eventually

__all__ = ["Postgres", "require_postgres"]

_SETTINGS = (
    "listen_addresses = '127.0.0.1'",
    "unix_socket_directories = ''",
    "shared_buffers = 16MB",
    "max_connections = 60",
    "wal_level = replica",
    "max_wal_senders = 4",
    "hot_standby = on",
)


def _programs() -> Path | None:
    """The newest one's folder; Debian keeps them off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def require_postgres() -> None:
    if _programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")


def _as_user(*command: str) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else [*command]


class Postgres:
    """One server. A context manager."""

    def __init__(self, *, primary: "Postgres | None" = None, net: str | None = None) -> None:
        """`net` is a network, such as 10.0.0.0/24, from which it takes connections besides."""
        self._net = net
        programs = _programs()
        assert programs is not None
        self._programs = programs
        self._primary = primary
        (self.port,) = free_ports(1)
        self.folder = Path(tempfile.mkdtemp(prefix="strata-pg-"))
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Postgres":
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        if self._primary is None:
            self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync")
            with (self._data / "postgresql.conf").open("a") as file:
                file.write("\n".join(_SETTINGS) + "\n")
            if self._net is not None:
                with (self._data / "postgresql.conf").open("a") as file:
                    file.write("listen_addresses = '*'\n")
                with (self._data / "pg_hba.conf").open("a") as file:
                    file.write(f"host all all {self._net} trust\n")
        else:
            source = f"host=127.0.0.1 port={self._primary.port} user=postgres application_name=second"
            self._run("pg_basebackup", "-D", str(self._data), "-d", source, "-R", "--checkpoint=fast", "--no-sync")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = _as_user(str(self._programs / program), *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    # --- life

    def start(self) -> None:
        """Returns when it takes connections."""
        with (self.folder / "log").open("ab") as log:
            command = _as_user(str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port))
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        eventually("PostgreSQL", self._answers, within_s=30)

    @property
    def pid(self) -> int:
        """Of the server itself, not of the program that changed the user for it."""
        return int((self._data / "postmaster.pid").read_text().splitlines()[0])

    def restart(self) -> None:
        """As an operator does it: connections are ended, not waited for."""
        self.end(signal.SIGINT)
        self.start()

    def end(self, number: int = signal.SIGINT) -> None:
        assert self._process is not None
        os.kill(self.pid, number)
        self._process.wait(120)
        self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self.end(signal.SIGQUIT)  # at once, its children with it, nothing is written

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-D", str(self._data), "-w")

    def be_synchronous(self) -> None:
        """From now on a commit is one when the standby has it, too."""
        self._set_standby("second")
        eventually("the standby", lambda: self.ask("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            return bool(self.ask("SELECT 1"))
        except OSError:
            return False
        except Exception as error:
            if "starting up" in str(error):
                return False
            raise

    # --- in the middle of a COMMIT

    @contextlib.contextmanager
    def commits_that_wait(self) -> Iterator[None]:
        """Inside, a COMMIT is done but not answered: it waits for a standby that there is not."""
        self._set_standby("nobody")
        try:
            yield
        finally:
            self._set_standby("")

    def _set_standby(self, name: str) -> None:
        self.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self.ask("SELECT pg_reload_conf()")
        eventually("the new setting", lambda: self.ask("SHOW synchronous_standby_names") == [(name,)])

    @contextlib.contextmanager
    def locked_lease(self, url: str) -> Iterator[None]:
        """Inside, a commit waits before it has done anything."""
        command = [str(self._programs / "psql"), url, "-qAt"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdin is not None
            assert session.stdout is not None
            session.stdin.write("BEGIN; SELECT term FROM strata_lease FOR UPDATE;\n")
            session.stdin.flush()
            assert session.stdout.readline()
            yield
            session.stdin.close()

    def end_backend(self, url: str, waits_for: str) -> None:
        """Ends the backend of a coordinator that waits for something."""
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'strata coordinator' AND datname = $1 AND wait_event = $2"
        )
        eventually("its end", lambda: self.ask(query, url.rpartition("/")[2], waits_for))

    # --- talking to it

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.ask(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def ask(self, query: str, *values: Any, database: str = "postgres") -> list[Any]:
        with ThreadPoolExecutor(1) as aside:  # the caller's thread may have an event loop of its own
            return aside.submit(asyncio.run, _ask(self.url(database), query, values)).result()


async def _ask(url: str, query: str, values: tuple[Any, ...]) -> list[Any]:
    import asyncpg

    connection = await asyncpg.connect(url, timeout=5)
    try:
        return [tuple(row) for row in await connection.fetch(query, *values)]
    finally:
        await connection.close()
