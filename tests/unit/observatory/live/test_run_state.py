"""How a run stands: one table of every case, and the book that gathers the facts."""

import os
import socket

import psutil
import pytest

from strata.clock import ManualClock
from strata.observatory.live.run_state import RunFacts, plan_state
from strata.observatory.live.runs import RunBook
from strata.protocol.generated.telemetry_pb2 import RunInfo as RunMessage
from strata.types.metrics import RunState

_NEVER = 10_000.0


@pytest.mark.parametrize(
    ("said", "task", "silent_s", "is_gone", "state"),
    [
        ("running", None, 0.0, None, "running"),
        ("running", None, 29.0, False, "running"),
        ("running", None, 30.0, False, "lost"),
        ("running", None, 30.0, None, "lost"),
        ("running", None, 5.0, True, "running"),  # its last batch may still be on its way
        ("running", None, 15.0, True, "killed"),
        ("finished", None, 0.0, None, "finished"),
        ("failed", None, _NEVER, True, "failed"),
        ("killed", None, 0.0, None, "killed"),
        ("lost", None, 5.0, None, "running"),
        ("lost", None, _NEVER, None, "lost"),
        (None, None, 299.0, None, "running"),
        (None, None, 301.0, None, "finished"),
        ("running", "running", _NEVER, True, "running"),
        ("finished", "running", 0.0, None, "running"),
        ("failed", "recovering", 0.0, None, "running"),
        ("running", "queued", 0.0, None, "running"),
        ("running", "completed", 0.0, None, "finished"),
        ("finished", "failed", 0.0, None, "failed"),
        ("running", "stopped", 0.0, None, "killed"),
    ],
)
def test_the_one_decision(
    said: str | None, task: str | None, silent_s: float, is_gone: bool | None, state: str
) -> None:
    facts = RunFacts(
        said=said, reason="why", task=(task, "because") if task else None, silent_s=silent_s, is_gone=is_gone
    )
    verdict = plan_state(facts, 30.0)
    assert verdict.state == state
    if state in ("failed", "killed", "lost"):
        assert verdict.reason
    if task in ("failed", "stopped"):
        assert verdict.reason == "because"


def _said(status: str, at_ms: int = 1, *, pid: int = 1, host: str = "elsewhere", reason: str = "") -> RunMessage:
    return RunMessage(run_id="r", status=status, updated_at_ms=at_ms, pid=pid, host=host, reason=reason)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def book(clock: ManualClock) -> RunBook:
    return RunBook(clock, 30.0)


def _state(book: RunBook) -> tuple[RunState, str | None, bool]:
    info = book.info("r")
    assert info is not None
    return info.state, info.reason or None, info.is_active


def test_a_silent_run_is_lost_and_comes_back(book: RunBook, clock: ManualClock) -> None:
    book.take(_said("running"))
    clock.advance(25)
    book.alive("r")
    clock.advance(25)
    assert _state(book) == (RunState.RUNNING, None, True)
    clock.advance(25)
    assert _state(book) == (RunState.LOST, "nothing was heard of it for 30 s", False)
    book.seen("r", 1, 2, 3, 4)
    assert _state(book)[0] is RunState.RUNNING


def test_an_older_word_changes_nothing(book: RunBook) -> None:
    """The store is read every half minute, and may not have the newest word yet."""
    book.take(_said("finished", 2_000))
    book.state("r", "running", "", 1_000)
    assert _state(book) == (RunState.FINISHED, None, False)
    book.take(_said("failed", 3_000, reason="ValueError: no"))
    assert _state(book) == (RunState.FAILED, "ValueError: no", False)


def test_the_absence_of_the_observatory_is_nobodys_silence(clock: ManualClock) -> None:
    clock.advance(100_000)
    book = RunBook(clock, 30.0)
    book.describe("r", {"name": "r"}, "")
    book.state("r", "running", "", 1_000)
    assert _state(book)[0] is RunState.RUNNING
    clock.advance(31)
    assert _state(book)[0] is RunState.LOST


def test_who_was_lost_before_a_restart_is_lost_after_it(clock: ManualClock) -> None:
    clock.advance(100_000)
    book = RunBook(clock, 30.0)
    book.describe("r", {"name": "r"}, "")
    book.state("r", "lost", "nothing was heard of it for 30 s", 1_000)
    assert _state(book)[0] is RunState.LOST


def test_a_look_tells_what_has_changed_once(book: RunBook, clock: ManualClock) -> None:
    book.take(_said("running"))
    assert book.look() == ["r"]
    assert book.look() == []
    clock.advance(31)
    assert book.look() == ["r"]
    assert book.look() == []


def test_a_process_of_this_host_that_is_gone_was_killed(book: RunBook, clock: ManualClock) -> None:
    here = RunMessage(
        run_id="r",
        status="running",
        updated_at_ms=1,
        host=socket.gethostname(),
        pid=os.getpid(),
        process_started_ms=round(psutil.Process().create_time() * 1000),
    )
    book.take(here)
    clock.advance(20)
    book.look()
    assert _state(book)[0] is RunState.RUNNING
    here.process_started_ms -= 3_600_000  # that one is gone, and its pid is somebody else's
    book.take(here)
    clock.advance(20)
    book.look()
    assert _state(book) == (RunState.KILLED, "its process is gone and did not say why", False)


def test_a_task_decides_about_its_run(book: RunBook) -> None:
    tasks = {"t": ("failed", "rank 1 exited with code 3")}
    book.task_of = tasks.get
    book.take(RunMessage(run_id="r", status="finished", updated_at_ms=1, pid=1, task_id="t"))
    assert _state(book) == (RunState.FAILED, "rank 1 exited with code 3", False)
    tasks["t"] = ("running", "")
    assert _state(book)[0] is RunState.RUNNING
