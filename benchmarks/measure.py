"""What runs inside a variant: a stopwatch and a way to hand figures back. Standard library only, so that a script in a
peer's own virtualenv can import it (the harness puts the repository on its path)."""

import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["REPORT_FILE", "UNAVAILABLE", "Stopwatch", "cpu_seconds", "folder_bytes", "give_up", "report", "stopwatch"]

REPORT_FILE = "STRATA_BENCH_REPORT"
"""Environment variable through which the harness names the file that a script reports into."""
UNAVAILABLE = "unavailable"


class Stopwatch:
    """Wall and CPU seconds of one `with stopwatch()` block; both are 0.0 until it ends."""

    def __init__(self) -> None:
        self.wall_s = 0.0
        self.cpu_s = 0.0

    def values(self, **more: float) -> dict[str, float]:
        """What a variant returns or reports: both times, and figures of its own beside them."""
        return {"wall_s": self.wall_s, "cpu_s": self.cpu_s, **more}


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time one block, so that a variant's own preparation stays outside the figure."""
    watch = Stopwatch()
    cpu = cpu_seconds()
    start = time.perf_counter()
    yield watch
    watch.wall_s = time.perf_counter() - start
    watch.cpu_s = cpu_seconds() - cpu


def cpu_seconds() -> float:
    """CPU time so far: every thread of this process, and its children that have ended and were waited for."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def folder_bytes(folder: Path) -> int:
    """What the files below a folder take on disk: whole blocks, as `du` counts them."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def report(values: Mapping[str, float]) -> None:
    """Hand a script's figures to the harness; started by hand, the script prints them instead."""
    _hand_over(dict(values))


def give_up(reason: str) -> None:
    """The peer of this script is installed and does not run here: its variant is skipped, and the report says why."""
    _hand_over({UNAVAILABLE: reason})


def _hand_over(values: Mapping[str, float | str]) -> None:
    text = json.dumps(values)
    target = os.environ.get(REPORT_FILE)
    if target:
        Path(target).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text + "\n")
