"""Random schedules of drop, duplicate, delay, reorder, crash and pause over the pure state, each judged by its history.

`pytest tests/unit/coordinator/test_simulation.py --schedules 100000` runs the full measure; a seed that fails is in the
message, and `run_schedule(seed)` repeats it exactly.
"""

from collections import Counter

import pytest

from strata.cluster import events as e
from strata.types.barriers import BarrierArrival, BarrierKey, BarrierPolicy
from tests.support.history import History, Violation
from tests.support.schedules import run_schedule


@pytest.mark.timeout(7200)
def test_every_promise_is_kept_in_every_schedule(request: pytest.FixtureRequest) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(request.config.getoption("--schedules")):
        world = run_schedule(seed)
        kinds.update(type(event).__name__ for event in world.history.durable)
    rare = ("BarrierReleased", "BarrierBroke", "MembersLost", "CheckpointCommitted", "CheckpointAborted")
    assert all(kinds[kind] for kind in rare), f"the schedules are too tame: {kinds}"


def test_a_schedule_is_repeatable() -> None:
    first, second = (run_schedule(77).history.durable for _ in range(2))
    assert first == second


# --- the judge itself must not sleep

KEY = BarrierKey("", "b", 0)


def joined(worker_id: str, rank: int, generation: int) -> e.WorkerJoined:
    return e.WorkerJoined(
        worker_id=worker_id,
        task_id="",
        incarnation=worker_id,
        rank=rank,
        generation=generation,
        hostname="",
        port=0,
        gpu_count=0,
        memory_bytes=0,
        agent_id="",
        metadata={},
        at=0.0,
    )


def released(*worker_ids: str) -> e.BarrierReleased:
    return e.BarrierReleased(
        task_id="",
        barrier_id="b",
        step=0,
        round=1,
        generation=2,
        worker_ids=worker_ids,
        request_ids=worker_ids,
        absent=(),
        created_at=0.0,
        at=0.0,
    )


def broke(*missing: str) -> e.BarrierBroke:
    return e.BarrierBroke(
        task_id="",
        barrier_id="b",
        step=0,
        round=1,
        generation=2,
        worker_ids=("a",),
        request_ids=("a",),
        missing=missing,
        reason="",
        expired=False,
        total=2,
        created_at=0.0,
        at=0.0,
    )


def lost(*worker_ids: str) -> e.MembersLost:
    return e.MembersLost(
        task_id="", generation=3, worker_ids=worker_ids, reasons=("",) * len(worker_ids), left=False, at=0.0
    )


@pytest.fixture
def history() -> History:
    history = History()
    history.on_applied([joined("a", 0, 1), joined("b", 1, 2)])
    history.on_issued("a", "a")
    history.on_arrival(KEY, 1, BarrierArrival(worker_id="a", barrier_id="b", policy=BarrierPolicy.FAIL))
    return history


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ([released("a")], "released without {'b'}"),
        ([released("a", "b")], "'b'.* never arrived"),
        ([lost("b"), broke("a")], "the dead are {'b'}"),
        ([lost("b")], "still waits for the dead {'b'}"),
        ([joined("c", 1, 3)], "rank 1 is held twice"),
        ([joined("c", 2, 2)], "generation 2 after 2"),
    ],
)
def test_the_judge_sees_a_broken_promise(history: History, events: list[e.Event], complaint: str) -> None:
    with pytest.raises(Violation, match=complaint):
        history.on_applied(events)


def test_the_judge_sees_two_answers_and_two_writers(history: History) -> None:
    history.on_durable(released("a"))
    with pytest.raises(Violation, match="decided twice"):
        history.on_durable(broke("b"))
    with pytest.raises(Violation, match="not durable"):
        history.on_outcome_told("a", "a", released("a", "x"))
    history.on_accepted("", 0, 1, "one")
    with pytest.raises(Violation, match="wrote as one and two"):
        history.on_accepted("", 0, 1, "two")
    history.on_told("", 5)
    with pytest.raises(Violation, match="generation 4 after 5"):
        history.on_told("", 4)
    with pytest.raises(Violation, match="went back"):
        history.check_after_restart(set(), {"": 4})
