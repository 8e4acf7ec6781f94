"""Decisions about tasks: gangs all or none, reasons that name what is lacking, budgets apart, back-off with a bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.coordinator.state.now import Now
from strata.coordinator.state.placement import (
    Host,
    Lacking,
    Placement,
    RankEnd,
    plan_end,
    plan_gang,
    plan_queue,
    plan_restart,
    plan_stopped,
)
from strata.coordinator.state.tasks import Task
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus

_NOW = Now(monotonic=50.0, wall=1_000.0)


def _host(name: str, slots: int, held: int = 0, launcher: str = "local") -> Host:
    return Host(agent_id=name, address="127.0.0.1", slots=slots, held=held, launcher=launcher)


def _task(name: str = "t", workers: int = 2, **values: object) -> Task:
    spec = TaskSpec(name=name, worker_count=workers, max_restarts=3, entrypoint=("x",))
    return Task(task_id=name, spec=spec, submitted_at=0.0, **values)  # type: ignore[arg-type]  # test's own fields


def _running(workers: int = 2, **course: object) -> Task:
    return _task(workers=workers, status=TaskStatus.RUNNING, attempt=1, course=TaskCourse(**course))  # type: ignore[arg-type]  # test's own fields


def test_a_gang_goes_on_few_hosts_and_neighbours_stay_together() -> None:
    plan = plan_gang(5, "local", [_host("a", 2), _host("b", 4), _host("c", 1)])
    assert plan == Placement(agents=("b", "b", "b", "b", "a"))


def test_a_gang_returns_to_its_hosts_where_they_have_room() -> None:
    hosts = [_host("a", 2, held=2), _host("b", 2), _host("c", 2)]
    assert plan_gang(3, "local", hosts, before=("a", "c", "b")) == Placement(agents=("b", "c", "b"))


def test_lacking_names_how_many_and_whether_it_could_ever_fit() -> None:
    assert plan_gang(1, "slurm", [_host("a", 4)]) == Lacking(
        reason="waiting for 1 slots: no slurm agent is attached", ever=False
    )
    busy = plan_gang(3, "local", [_host("a", 4, held=2)])
    assert busy == Lacking(reason="waiting for 3 slots: 2 of 4 are free on 1 local agent", ever=True)
    small = plan_gang(9, "local", [_host("a", 4), _host("b", 4)])
    assert small == Lacking(reason="needs 9 slots, 2 local agents offer 8: 1 more are needed", ever=False)


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), max_size=5),
    st.lists(st.integers(0, 6), max_size=12),
)
def test_a_gang_is_placed_whole_within_the_free_slots_or_not_at_all(
    ranks: int, slots: list[tuple[int, int]], before: list[int]
) -> None:
    hosts = [_host(f"h{number}", offered, held) for number, (offered, held) in enumerate(slots)]
    plan = plan_gang(ranks, "local", hosts, before=[f"h{number}" for number in before])
    free = {host.agent_id: host.free for host in hosts}
    if isinstance(plan, Lacking):
        assert sum(free.values()) < ranks
        return
    assert len(plan.agents) == ranks
    assert all(plan.agents.count(name) <= free[name] for name in set(plan.agents))


def test_the_queue_is_first_come_first_served_without_starving_or_blocking() -> None:
    hosts = [_host("a", 4, held=1)]
    planned = plan_queue([_task("huge", 9), _task("wide", 4), _task("small", 1)], hosts)
    assert isinstance(planned["huge"], Lacking)
    assert planned["wide"] == Lacking(reason="waiting for 4 slots: 3 of 4 are free on 1 local agent", ever=True)
    assert planned["small"] == Lacking(reason="waiting behind task wide", ever=True)
    free = plan_queue([_task("one", 2), _task("two", 1), _task("three", 1)], hosts)
    assert [type(plan) for plan in free.values()] == [Placement, Placement, Lacking]


def test_a_task_completes_when_all_ranks_finished_well() -> None:
    ends = {0: RankEnd(rank=0, exit_code=0)}
    assert plan_end(_running(), ends, 5, _NOW, 0.5) is None
    decision = plan_end(_running(), ends | {1: RankEnd(rank=1, exit_code=0)}, 5, _NOW, 0.5)
    assert decision is not None
    assert (decision.status, decision.reason) == (TaskStatus.COMPLETED, "all 2 ranks finished")


def test_a_death_after_progress_is_repaired_at_once() -> None:
    decision = plan_end(_running(step=10), {1: RankEnd(rank=1, exit_code=-9)}, 20, _NOW, 0.5)
    assert decision is not None
    assert decision.reason == "rank 1 was killed by signal 9; all ranks go back to step 20"
    assert (decision.course.failures, decision.course.stalled, decision.course.retry_at) == (1, 0, _NOW.wall)


@pytest.mark.parametrize(("stalled", "chance", "delay"), [(0, 0.0, 0.5), (0, 1.0, 1.5), (1, 0.5, 2.0)])
def test_without_progress_the_next_attempt_waits_longer_each_time(stalled: int, chance: float, delay: float) -> None:
    decision = plan_end(_running(stalled=stalled), {0: RankEnd(rank=0, exit_code=1)}, -1, _NOW, chance)
    assert decision is not None
    assert decision.course.retry_at - _NOW.wall == pytest.approx(delay)


def test_three_attempts_without_progress_are_enough() -> None:
    decision = plan_end(_running(stalled=2), {0: RankEnd(rank=0, exit_code=1, message="boom")}, -1, _NOW, 0.5)
    assert decision is not None
    assert decision.status is TaskStatus.FAILED
    assert decision.reason == "rank 0 exited with code 1: boom; 3 attempts in a row brought no new checkpoint"


def test_preemptions_do_not_touch_the_failure_budget() -> None:
    task = _running(failures=3, preemptions=7, stalled=2)
    decision = plan_end(task, {0: RankEnd(rank=0, exit_code=0, preempted=True)}, -1, _NOW, 0.5)
    assert decision is not None
    assert decision.status is TaskStatus.RECOVERING
    assert (decision.course.failures, decision.course.preemptions, decision.course.stalled) == (3, 8, 0)
    failed = plan_end(task, {0: RankEnd(rank=0, exit_code=1)}, 5, _NOW, 0.5)
    assert failed is not None
    assert failed.reason == "rank 0 exited with code 1; its 3 restarts are used up"


def test_the_rank_that_says_most_is_blamed() -> None:
    ends = {
        0: RankEnd(rank=0, exit_code=75),
        1: RankEnd(rank=1, exit_code=None, preempted=True),
        2: RankEnd(rank=2, exit_code=-9),
    }
    decision = plan_end(_running(workers=3, step=0), ends, 5, _NOW, 0.5)
    assert decision is not None
    assert decision.reason.startswith("rank 2 was killed by signal 9")


def test_the_next_attempt_waits_for_its_time_and_its_slots() -> None:
    task = _running(placement=("a", "a"), retry_at=1_001.0)
    assert plan_restart(task, [_host("a", 2)], 7, _NOW) is None
    later = _NOW._replace(wall=1_001.0)
    decision = plan_restart(task, [_host("a", 2)], 7, later)
    assert decision is not None
    assert (decision.status, decision.attempt, decision.reason) == (
        TaskStatus.RUNNING,
        2,
        "attempt 2, resumes from step 7",
    )
    assert decision.course.placement == ("a", "a")
    assert decision.course.step == 7
    lacking = plan_restart(task, [_host("a", 1)], 7, later)
    assert lacking is not None
    assert (lacking.status, lacking.attempt) == (TaskStatus.RECOVERING, 1)


def test_a_stopped_task_says_who_had_to_be_killed() -> None:
    task = _running()
    task.reason = "stopped by the user"
    ends = {0: RankEnd(rank=0, exit_code=-9, preempted=True)}
    assert plan_stopped(task, ends) is None
    decision = plan_stopped(task, ends | {1: RankEnd(rank=1, exit_code=0, preempted=True)})
    assert decision is not None
    assert (decision.status, decision.reason) == (
        TaskStatus.STOPPED,
        "stopped by the user; ranks [0] had to be killed",
    )
