"""Replacing ranks in place: who can be, where the new process goes, what it costs, and when the gang starts anew."""

import signal
from collections.abc import Sequence
from dataclasses import replace

import pytest

from strata.cluster.tasks import Task
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import RankEnd, plan_end, plan_start
from strata.coordinator.state.now import Now
from strata.coordinator.state.placement import Host
from strata.coordinator.state.replacement import plan_part, plan_replace
from strata.types.plain import from_plain
from strata.types.tasks import MAX_LOSSES, TaskCourse, TaskSpec, TaskStatus

_NOW = Now(monotonic=50.0, wall=1_000.0)
_SLOTS = (Host(agent_id="a", address="a", slots=4), Host(agent_id="b", address="b", slots=4))


def _running(placement: Sequence[str] = ("a", "a", "b", "b"), max_restarts: int = 3, **course: object) -> Task:
    spec = TaskSpec(name="t", worker_count=len(placement), max_restarts=max_restarts, entrypoint=("x",))
    given = TaskCourse(**{"placement": tuple(placement), "in_place": True, **course})  # type: ignore[arg-type]
    return Task(task_id="t", spec=spec, submitted_at=0.0, status=TaskStatus.RUNNING, attempt=1, course=given)


def _killed(rank: int) -> RankEnd:
    return RankEnd(rank=rank, exit_code=-signal.SIGKILL)


def _replace(task: Task, *ends: RankEnd, hosts: Sequence[Host] = _SLOTS, step: int = -1) -> ChangeTask | None:
    by_rank = {end.rank: end for end in ends}
    recovery = plan_end(task, by_rank, step, _NOW, 0.5)
    assert recovery is not None
    return plan_replace(task, by_rank, recovery, hosts, step)


def _replaced(task: Task, *ends: RankEnd, hosts: Sequence[Host] = _SLOTS, step: int = -1) -> Task:
    change = _replace(task, *ends, hosts=hosts, step=step)
    assert change is not None
    return replace(task, status=change.status, attempt=change.attempt, course=change.course, reason=change.reason)


def test_one_rank_is_replaced_on_its_own_host_and_nothing_else_changes() -> None:
    task = _replaced(_running(), _killed(2))
    assert (task.status, task.attempt) == (TaskStatus.RUNNING, 1)
    assert task.course.placement == ("a", "a", "b", "b")
    assert (task.course.lives, task.course.world) == ((0, 0, 1, 0), 1)
    assert [task.incarnation(rank) for rank in range(4)] == ["t.1.0", "t.1.1", "t.1.2.1", "t.1.3"]
    assert task.reason == "rank 2 was killed by signal 9 (SIGKILL); replaced in place: rank 2 on b, the others go on"


def test_two_deaths_at_once_are_one_change() -> None:
    task = _replaced(_running(), _killed(1), _killed(3))
    assert (task.course.lives, task.course.world, task.course.preemptions) == ((0, 1, 0, 1), 2, 1)
    assert task.reason.startswith("rank 1 was killed by signal 9 (SIGKILL); rank 3 was killed")


def test_a_newcomer_that_dies_is_replaced_again() -> None:
    task = _replaced(_replaced(_running(), _killed(2)), _killed(2))
    assert (task.course.lives, task.incarnation(2)) == ((0, 0, 2, 0), "t.1.2.2")


def test_a_death_while_the_others_meet_the_newcomer_is_another_world() -> None:
    task = _replaced(_replaced(_running(), _killed(2)), _killed(1))
    assert (task.course.lives, task.course.world) == ((0, 1, 1, 0), 2)


def test_rank_0_is_replaced_like_any_other() -> None:
    assert _replaced(_running(), _killed(0)).course.lives == (1, 0, 0, 0)


def test_a_rank_of_a_lost_host_goes_where_most_slots_are_free() -> None:
    lost = [RankEnd(rank=rank, exit_code=None, message="agent b is lost", preempted=True) for rank in (2, 3)]
    hosts = [Host(agent_id="a", address="a", slots=3), Host(agent_id="c", address="c", slots=9, held=6)]
    assert _replaced(_running(), *lost, hosts=hosts).course.placement == ("a", "a", "c", "c")


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [Host(agent_id="a", address="a", slots=2)],
        [Host(agent_id="a", address="a", slots=2), Host(agent_id="b", address="b", slots=4, held=3)],
        [Host(agent_id="a", address="a", slots=2), Host(agent_id="b", address="b", slots=9, launcher="ssh")],
    ],
)
def test_without_a_free_slot_the_gang_starts_anew(hosts: list[Host]) -> None:
    assert _replace(_running(), _killed(2), hosts=hosts) is None


def test_a_rank_that_never_said_that_it_takes_part_keeps_the_gang_together() -> None:
    assert _replace(_running(in_place=False), _killed(2)) is None


def test_ranks_that_leave_for_the_next_attempt_are_not_replaced_in_this_one() -> None:
    assert _replace(_running(leaving="host a is drained"), _killed(2)) is None


def test_with_nobody_left_there_is_nobody_to_take_the_state_from() -> None:
    assert _replace(_running(), *(_killed(rank) for rank in range(4))) is None


def test_a_rank_that_has_finished_cannot_be_met_again() -> None:
    assert _replace(_running(), RankEnd(rank=0, exit_code=0), _killed(2)) is None


def test_losses_without_a_checkpoint_use_up_the_budget_and_a_checkpoint_gives_it_back() -> None:
    task = _running()
    for number in range(MAX_LOSSES):
        task = _replaced(task, _killed(2))
        assert (task.course.losses, task.course.retry_at) == (number + 1, 0.0)
    assert _replace(task, _killed(2)) is None
    task = _replaced(task, _killed(2), step=70)
    assert (task.course.losses, task.course.step) == (0, 70)
    assert _replaced(task, _killed(2), step=70).course.losses == 1


def test_failures_of_its_own_count_against_max_restarts() -> None:
    failed = RankEnd(rank=1, exit_code=1)
    task = _running(max_restarts=1)
    assert _replaced(task, failed).course.failures == 1
    assert _replace(_replaced(task, failed), failed) is None


def test_a_coordinator_that_starts_anew_knows_from_its_journal_that_they_take_part() -> None:
    noted = plan_part(_running(in_place=False), dict.fromkeys(range(4), True))
    assert noted is not None
    assert noted.course.in_place
    assert plan_part(_running(), {}) is None  # nobody has beaten yet
    assert _replaced(_running(), _killed(2)).course.lives == (0, 0, 1, 0)


def test_all_must_say_it_and_one_can_take_it_back() -> None:
    before = _running(in_place=False)
    assert plan_part(before, dict.fromkeys(range(3), True)) is None
    assert plan_part(before, {**dict.fromkeys(range(3), True), 3: False}) is None
    taken_back = plan_part(_running(), {2: False})
    assert taken_back is not None
    assert not taken_back.course.in_place


def test_a_new_attempt_begins_with_first_lives_and_asks_again() -> None:
    task = _replaced(_running(), _killed(2))
    course = plan_start(task, ("a", "a", "a", "a"), -1).course
    assert (course.lives, course.in_place) == ((), False)


def test_a_course_of_an_older_journal_has_no_lives() -> None:
    course = from_plain(TaskCourse, {"placement": ["a", "b"], "hurry": False})
    assert (course.lives, course.life(1), course.world, course.in_place) == ((), 0, 0, False)
