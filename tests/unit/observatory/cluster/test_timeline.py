"""Where a task's wall time went: attempts folded from events, shares that add up and never invent."""

from collections import Counter
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.observatory.answers.timeline import TaskTimeline, TimeShares
from strata.observatory.cluster.timeline import Facts, Interruption, Timeline, activity, plan_shares, timeline_view
from strata.observatory.cluster.vitals import WorkerVitals
from strata.types.faults import Fault, FaultKind


def killed_once() -> Timeline:
    """Started at 100, killed at 160, started again at 165 from step 40, done at 200."""
    timeline = Timeline()
    timeline.change("running", 1, "attempt 1", 100.0, -1)
    timeline.change("recovering", 1, "rank 2 was killed by signal 9; all ranks go back to step 40", 160.0, -1)
    timeline.change("recovering", 1, "waiting for 4 slots", 162.0, -1)
    timeline.change("running", 2, "attempt 2, resumes from step 40", 165.0, 40)
    timeline.change("completed", 2, "all 4 ranks finished", 200.0, 40)
    return timeline


FACTS = {
    1: Facts(working_at=105.0, top_step=55, resumed_step_at=145.0),
    2: Facts(working_at=170.0, top_step=100, resumed_step_at=None),
}


def total(shares: TimeShares) -> float:
    parts = [value or 0.0 for name, value in asdict(shares).items() if name != "wall_s"]
    return float(sum(parts))


def shares_of(timeline: Timeline, facts: dict[int, Facts], now: float) -> TimeShares:
    shares = plan_shares(timeline, facts, now)
    assert shares is not None
    return shares


def test_a_kill_costs_recovery_and_the_work_since_the_last_checkpoint() -> None:
    timeline = killed_once()
    timeline.watch(Counter(training=3, barrier=1), 60.0)
    timeline.watch(Counter(checkpoint=4), 10.0)
    shares = shares_of(timeline, FACTS, now=999.0)
    assert shares.wall_s == pytest.approx(100.0)
    assert shares.starting_s == pytest.approx(5.0)
    assert shares.recovering_s == pytest.approx(10.0), "from the kill to the first new step, waiting included"
    assert shares.lost_s == pytest.approx(15.0), "from the moment step 40 was reached to the kill"
    assert shares.training_s == pytest.approx(70.0 * 45 / 70)
    assert shares.barrier_s == pytest.approx(70.0 * 15 / 70)
    assert shares.checkpoint_s == pytest.approx(70.0 * 10 / 70)
    assert shares.unmeasured_s == pytest.approx(0.0)
    assert total(shares) == pytest.approx(100.0)
    shown = timeline_view("t1", timeline, FACTS, 999.0)
    assert shown.goodput_percent == pytest.approx(45.0)
    first, second = shown.attempts
    assert (first.status, first.lost_steps, first.lost_s) == ("recovering", 15, 15.0)
    assert "signal 9" in (first.reason or ""), "why it ended, not what it waited for later"
    assert (second.status, second.resume_step, second.lost_steps, second.lost_s) == (
        "completed", 40, None, None,
    )  # fmt: skip


def test_what_ended_an_attempt_is_its_last_interruption_that_was_not_in_place() -> None:
    timeline = killed_once()
    seen = Fault(kind=FaultKind.KILLED, rank=2), Fault(kind=FaultKind.FOLLOWED, rank=1)
    grown = (Fault(kind=FaultKind.GROWN),)
    told = [(1, 1, seen, True), (1, 2, seen, True), (2, 3, seen, True)]
    for attempt, number, faults, in_place in told:
        timeline.interrupt(Interruption(attempt=attempt, number=number, at=130.0, faults=faults, in_place=in_place))
    assert [row.ended_by for row in timeline_view("t1", timeline, FACTS, 999.0).attempts] == [None, None]
    timeline.interrupt(Interruption(attempt=1, number=4, at=150.0, faults=seen[::-1]))
    assert [row.ended_by for row in timeline_view("t1", timeline, FACTS, 999.0).attempts] == [FaultKind.KILLED, None]
    timeline.interrupt(Interruption(attempt=1, number=5, at=151.0, faults=grown))
    assert [row.ended_by for row in timeline_view("t1", timeline, FACTS, 999.0).attempts] == [FaultKind.GROWN, None]


def test_the_time_between_a_stop_and_its_resumption_is_nobodys() -> None:
    timeline = Timeline()
    timeline.change("running", 1, "attempt 1", 100.0, -1)
    timeline.change("stopped", 1, "stopped by the user", 160.0, -1)
    timeline.change("queued", 1, "resumed by the user, to go on from step 40", 9_000.0, -1)
    timeline.change("running", 2, "attempt 2, resumes from step 40", 9_001.0, 40)
    timeline.change("completed", 2, "all 4 ranks finished", 9_036.0, 40)
    facts = {1: Facts(working_at=105.0, top_step=40), 2: Facts(working_at=9_006.0, top_step=100)}
    shares = shares_of(timeline, facts, now=9_999.0)
    assert (shares.wall_s, shares.starting_s, shares.recovering_s, shares.lost_s) == (95.0, 10.0, 0.0, 0.0)
    assert [row.status for row in timeline_view("t1", timeline, facts, 9_999.0).attempts] == ["stopped", "completed"]


def test_what_nobody_watched_is_not_called_training() -> None:
    shares = shares_of(killed_once(), FACTS, now=999.0)
    assert shares.training_s is shares.barrier_s is shares.checkpoint_s is None
    assert shares.unmeasured_s == pytest.approx(70.0)
    assert timeline_view("t1", killed_once(), FACTS, 999.0).goodput_percent is None
    half = killed_once()
    half.watch(Counter(training=4), 35.0)
    partly = shares_of(half, FACTS, now=999.0)
    assert partly.training_s == pytest.approx(35.0)
    assert partly.unmeasured_s == pytest.approx(35.0)


def test_a_running_attempt_without_a_step_is_still_starting() -> None:
    timeline = Timeline()
    timeline.change("running", 1, "", 100.0, -1)
    assert shares_of(timeline, {}, now=107.0).starting_s == pytest.approx(7.0)
    timeline.change("recovering", 1, "killed", 110.0, -1)
    shares = shares_of(timeline, {1: Facts(working_at=104.0, top_step=3)}, now=112.0)
    assert shares.recovering_s == pytest.approx(2.0)
    assert shares.lost_s == 0.0, "what is lost is known when the next attempt says where it goes on"
    timeline.change("running", 2, "", 113.0, -1)
    again = timeline_view("t1", timeline, {1: Facts(working_at=104.0, top_step=3)}, 113.0)
    assert again.shares is not None
    assert again.shares.lost_s == pytest.approx(6.0), "back to the start: all of it"
    assert again.attempts[0].lost_steps == 3


def test_nothing_is_known_of_a_task_that_never_ran() -> None:
    shown = timeline_view("t1", Timeline(), {}, 5.0)
    assert shown == TaskTimeline(task_id="t1", attempts=[], shares=None, goodput_percent=None)


def test_a_replayed_event_changes_nothing() -> None:
    timeline, again = killed_once(), killed_once()
    again.change("running", 1, "attempt 1", 100.0, -1)
    again.change("recovering", 1, "later words", 161.0, -1)
    again.change("completed", 2, "all 4 ranks finished", 201.0, 40)
    assert again.attempts == timeline.attempts


def test_activity_of_a_rank() -> None:
    assert activity(WorkerVitals(state="training", section=None)) == "training"
    assert activity(WorkerVitals(state="training", section="barrier epoch-3", at_barrier=True)) == "barrier"
    assert activity(WorkerVitals(state="training", section="barrier reef images")) == "section"
    assert activity(WorkerVitals(state="training", section="checkpoint")) == "checkpoint"
    assert activity(WorkerVitals(state="checkpointing")) == "checkpoint"
    assert activity(WorkerVitals(state="training", section="eval")) == "section"


@given(
    gaps=st.lists(st.tuples(*[st.floats(0, 1e4)] * 3), min_size=1, max_size=6),
    looks=st.lists(
        st.tuples(st.sampled_from(["training", "barrier", "checkpoint", "section"]), st.floats(0.1, 1e4)), max_size=5
    ),
    reached=st.floats(0, 1),
    ended=st.booleans(),
)
def test_the_parts_always_add_up(
    gaps: list[tuple[float, float, float]], looks: list[tuple[str, float]], reached: float, ended: bool
) -> None:
    timeline, facts, at = Timeline(), {}, 1_000.0
    for number, (start, work, wait) in enumerate(gaps, 1):
        timeline.change("running", number, "", at, number)
        end = at + start + work
        facts[number] = Facts(working_at=at + start, top_step=9, resumed_step_at=at + start + work * reached)
        if number < len(gaps) or ended:
            timeline.change("recovering" if number < len(gaps) else "completed", number, "", end, number)
        at = end + wait
    for name, seconds in looks:
        timeline.watch(Counter({name: 4}), seconds)
    shares = shares_of(timeline, facts, now=at)
    assert total(shares) == pytest.approx(shares.wall_s, abs=1e-3)
    assert all(value is None or value >= -1e-6 for value in asdict(shares).values())
