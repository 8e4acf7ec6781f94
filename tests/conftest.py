"""How far the long-running kinds of tests go: a slice by default, the full measure by a flag. How they run in parallel.
And a place of their own for what `strata up` tells the user's other processes: a test must not find the cluster of
whoever runs it.
"""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from strata.ambient import ambient
from tests.support.schedule import ByCluster

_PLACE = tempfile.TemporaryDirectory(prefix="strata-tests-")
os.environ["XDG_RUNTIME_DIR"] = _PLACE.name

# Hundreds of processes start here. Each would compile all of Strata anew, and pytest every test file.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell's background job ignores Ctrl-C, and so would every process that a test starts and ends with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--schedules", type=int, default=200, help="random schedules of the simulated cluster")
    parser.addoption("--failovers", type=int, default=2, help="coordinators that are killed, and cut off, under load")
    parser.addoption("--kills", type=int, default=5, help="kill -9 of the coordinator, or under an elastic job")
    parser.addoption("--notices", type=int, default=20, help="hosts that go away under a job; 200 is the full measure")
    parser.addoption("--commits", type=int, default=2, help="commits that are followed by a kill -9 of a rank")
    parser.addoption("--odd-values", type=int, default=12, help="odd values through every door; 1000 for all of them")
    parser.addoption("--seeds", type=int, default=1, help="injected faults of each kind for strata why; 20 for all")
    parser.addoption("--hostile-queries", type=int, default=500, help="hostile questions in SQL; 10000 for all")
    parser.addoption("--points", type=int, default=30_000, help="points of the run whose observatory is killed")
    parser.addoption("--fuzz-cases", type=int, default=300, help="cases of noise for the gRPC server")
    parser.addoption("--api-cases", type=int, default=200, help="requests made from the OpenAPI description")


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: most tests wait for processes that they started, so one more than there are cores."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    config.option.loadscopereorder = False  # as they are collected: browser first, the short ones of tests/unit last
    return ByCluster(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: nobody looks through it for garbage again (0.3 s each time)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def one_job() -> Iterator[None]:
    """A process belongs to one job, and strata.init tells its checkpoints and loaders so for good. Here each test is a
    job of its own."""
    before = dict(vars(ambient))
    yield
    vars(ambient).update(before)
