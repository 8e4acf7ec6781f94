"""What a coordinator writes of the life of its cluster, and how little of what comes often."""

import logging

import pytest

from strata.clock import ManualClock
from strata.cluster import events as e
from strata.coordinator.engine.lifecycle import LifecycleLog
from strata.coordinator.state.cluster import ClusterState, StateConfig


def _released(step: int, name: str = "step") -> e.BarrierReleased:
    return e.BarrierReleased(
        task_id="t1",
        barrier_id=name,
        step=step,
        round=1,
        generation=1,
        worker_ids=("t1-0", "t1-1"),
        request_ids=("", ""),
        absent=(),
        created_at=100.0,
        at=100.25,
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lifecycle(clock: ManualClock) -> LifecycleLog:
    return LifecycleLog(ClusterState(StateConfig()), clock)


def test_a_barrier_per_step_writes_a_few_lines_and_a_count(
    lifecycle: LifecycleLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="strata"):
        for step in range(315):
            lifecycle.on_event(_released(step, name=f"step-{step}"))
        lifecycle.on_event(_released(0, name="epoch-end"))
        clock.advance(10.0)
        lifecycle.flush()
        lifecycle.flush()
    first = "barrier 'step-0' reached at step 0 by 2 workers, 0.250 s after the first of them; the last was t1-1"
    assert caplog.messages[0] == first
    assert [text for text in caplog.messages if "'epoch-end'" in text]
    assert caplog.messages[-1] == "… and 312 more: barriers reached 'step-' in 10 s"
    assert len(caplog.messages) == 5
    assert {record.task_id for record in caplog.records} == {"t1"}  # type: ignore[attr-defined]  # our extra


def test_workers_that_die_are_errors_and_those_that_leave_are_not(
    lifecycle: LifecycleLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="strata"):
        for left in (False, True):
            lost = e.MembersLost(
                task_id="", generation=3, worker_ids=("w1",), reasons=("no heartbeat",), left=left, at=1.0
            )
            lifecycle.on_event(lost)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "worker w1 lost: no heartbeat; generation 3"),
        ("INFO", "worker w1 left: no heartbeat; generation 3"),
    ]


def test_a_task_is_written_once_per_change_at_its_level(
    lifecycle: LifecycleLog, caplog: pytest.LogCaptureFixture
) -> None:
    def changed(status: str, reason: str, attempt: int = 1, step: int = -1) -> e.TaskChanged:
        return e.TaskChanged(task_id="t1", status=status, attempt=attempt, reason=reason, at=1.0, step=step)

    with caplog.at_level(logging.INFO, logger="strata"):
        for event in (
            changed("running", "attempt 1"),
            changed("running", "attempt 1", step=5),
            changed("running", "rank 1 has made no step for 300 s"),
            changed("recovering", "rank 2 was killed by signal 9"),
            changed("running", "attempt 2", attempt=2),
            changed("failed", "given up after 3 restarts", attempt=2),
        ):
            lifecycle.on_event(event)
    levels = [record.levelname for record in caplog.records]
    assert levels == ["INFO", "WARNING", "WARNING", "INFO", "ERROR"]
    assert caplog.messages[-1] == "task t1 is failed: given up after 3 restarts"
