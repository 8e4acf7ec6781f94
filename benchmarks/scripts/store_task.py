"""One job for every metric store: log points one by one, then read a series of a million back at 2,000 points. Standard
library only: peers run it in virtualenvs of their own.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import folder_bytes, report, stopwatch

__all__ = ["LOGGED", "STORED", "measure_store"]

LOGGED = 100_000
STORED = 1_000_000

Write = Callable[[Path, int], float]  # logs so many points into a new folder; the seconds until they were safe
Read = Callable[[Path], dict[str, float]]  # `read_s` and `read_points` of the series in a folder


def measure_store(name: str, write: Write, read: Read) -> None:
    """The million is written once and kept beside the system's temporary files: some peers need minutes for it."""
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as folder, stopwatch() as watch:
        logged_s = write(Path(folder), LOGGED)
    kept = Path(tempfile.gettempdir()) / f"strata-bench-store-{name}-{STORED}"
    stamp = kept.with_suffix(".done")
    if not stamp.exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        write(kept, STORED)
        stamp.touch()
    report(
        {
            "wall_s": logged_s,
            "cpu_s": watch.cpu_s,
            "points_per_s": LOGGED / logged_s,
            **read(kept),
            "disk_bytes_per_point": folder_bytes(kept) / STORED,
        }
    )
