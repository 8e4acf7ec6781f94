"""What a rank's end means: whose doing it was, which budget it counts against, when to give up and how long to wait."""

import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.cluster.tasks import Task
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import RankEnd, parting_of, plan_end, plan_leave, plan_restart, plan_stopped
from strata.coordinator.state.now import Now
from strata.coordinator.state.placement import Host
from strata.types.faults import Fault, FaultKind
from strata.types.tasks import LOSS_WINDOW_S, MAX_LOSSES, TaskCourse, TaskSpec, TaskStatus

_NOW = Now(monotonic=50.0, wall=1_000.0)
_KILLED = RankEnd(rank=0, exit_code=-signal.SIGKILL)
_FAILED = RankEnd(rank=0, exit_code=1)
_LOST_HOST = RankEnd(rank=0, exit_code=None, message="agent a is lost", preempted=True)


def _running(workers: int = 2, max_restarts: int = 3, **course: object) -> Task:
    spec = TaskSpec(name="t", worker_count=workers, max_restarts=max_restarts, entrypoint=("x",))
    given = TaskCourse(**course)  # type: ignore[arg-type]  # test's own fields
    return Task(task_id="t", spec=spec, submitted_at=0.0, status=TaskStatus.RUNNING, attempt=1, course=given)


def _host(slots: int) -> Host:
    return Host(agent_id="a", address="127.0.0.1", slots=slots)


def _end(task: Task, *ends: RankEnd, step: int = -1, now: Now = _NOW, chance: float = 0.5) -> ChangeTask:
    decision = plan_end(task, {end.rank: end for end in ends}, step, now, chance)
    assert decision is not None
    return decision


def _row(task: Task, end: RankEnd, count: int, every_s: float = 60.0) -> list[ChangeTask]:
    """The same end again and again, with no new checkpoint; stops when the task is given up."""
    decisions: list[ChangeTask] = []
    for number in range(count):
        decisions.append(_end(task, end, now=_NOW._replace(wall=_NOW.wall + number * every_s)))
        task = replace(task, course=decisions[-1].course)
        if decisions[-1].status is TaskStatus.FAILED:
            break
    return decisions


# --- whose doing


@pytest.mark.parametrize(
    ("task", "end", "asked", "why"),
    [
        (_running(leaving="host h goes away"), RankEnd(rank=0, exit_code=0, preempted=True), True, "host h goes away"),
        (_running(), RankEnd(rank=0, exit_code=0, preempted=True, left=True), True, "it was asked to go"),
        (replace(_running(), status=TaskStatus.STOPPING), _KILLED, True, "stopped, since the task is stopping"),
        (_running(leaving="host h goes away"), _KILLED, False, str(_KILLED)),
        (_running(), RankEnd(rank=0, exit_code=0, preempted=True), False, "rank 0 exited with code 0"),
    ],
)
def test_a_rank_that_did_as_it_was_asked_is_not_lost(task: Task, end: RankEnd, asked: bool, why: str) -> None:
    assert parting_of(task, end) == (asked, why)


@pytest.mark.parametrize(
    ("end", "lost"),
    [
        (RankEnd(rank=0, exit_code=1), False),
        (RankEnd(rank=0, exit_code=-signal.SIGSEGV), False),
        (RankEnd(rank=0, exit_code=-signal.SIGABRT), False),
        (RankEnd(rank=0, exit_code=-signal.SIGKILL, out_of_memory=True), False),
        (RankEnd(rank=0, exit_code=None, unstarted=True), False),
        (RankEnd(rank=0, exit_code=-signal.SIGKILL, hung=True), False),
        (RankEnd(rank=0, exit_code=None, hung=True), False),  # its agent was killed right after
        (RankEnd(rank=0, exit_code=-signal.SIGKILL), True),
        (RankEnd(rank=0, exit_code=-signal.SIGTERM), True),
        (RankEnd(rank=0, exit_code=-signal.SIGINT), True),
        (RankEnd(rank=0, exit_code=128 + signal.SIGKILL), True),
        (RankEnd(rank=0, exit_code=128 + signal.SIGTERM), True),
        (RankEnd(rank=0, exit_code=None), True),
        (RankEnd(rank=0, exit_code=75), True),
        (RankEnd(rank=0, exit_code=None, hindered=True), True),
        (_LOST_HOST, True),
    ],
)
def test_whose_doing_an_end_was(end: RankEnd, lost: bool) -> None:
    assert end.lost is lost
    course = _end(_running(), end).course
    assert (course.failures, course.stalled) == ((0, 0) if lost else (1, 1))
    assert (course.preemptions, course.losses) == ((1, 1) if lost else (0, 0))


@pytest.mark.parametrize(
    ("ends", "blamed"),
    [
        ({0: 75, 1: None, 2: -9}, 2),
        ({0: 1, 2: -9}, 2),  # its peer was killed, and its framework raised for that reason
        ({0: 75, 2: 1}, 2),
        ({1: 1, 2: 1}, 1),
    ],
)
def test_the_end_that_the_others_followed_from_is_blamed(ends: dict[int, int | None], blamed: int) -> None:
    reason = _end(_running(workers=3), *(RankEnd(rank=rank, exit_code=code) for rank, code in ends.items())).reason
    assert reason.startswith(f"rank {blamed} ")


def test_ranks_that_leave_a_finished_one_are_out_of_step_by_themselves() -> None:
    course = _end(_running(), RankEnd(rank=0, exit_code=0), RankEnd(rank=1, exit_code=75)).course
    assert (course.failures, course.preemptions) == (1, 0)


def test_an_end_is_told_with_its_signal_and_its_cause() -> None:
    assert str(RankEnd(rank=1, exit_code=-9)) == "rank 1 was killed by signal 9 (SIGKILL)"
    assert str(RankEnd(rank=1, exit_code=-40)) == "rank 1 was killed by signal 40"
    assert str(RankEnd(rank=1, exit_code=1, message="KeyError: 'lr'")) == "rank 1 exited with code 1: KeyError: 'lr'"
    hung = RankEnd(rank=1, exit_code=-9, hung=True, message="no step for 9 s at step 4; it stood in x.py:3 (f)")
    assert str(hung) == "rank 1 hung: no step for 9 s at step 4; it stood in x.py:3 (f)"
    full = RankEnd(rank=0, exit_code=None, hindered=True, message="0.stderr: No space left on device")
    assert str(full) == "rank 0 could not be started on its host: 0.stderr: No space left on device"


# --- the budgets


def test_a_task_completes_when_all_ranks_finished_well() -> None:
    ends = {0: RankEnd(rank=0, exit_code=0)}
    assert plan_end(_running(), ends, 5, _NOW, 0.5) is None
    decision = _end(_running(), ends[0], RankEnd(rank=1, exit_code=0), step=5)
    assert (decision.status, decision.reason) == (TaskStatus.COMPLETED, "all 2 ranks finished")


@pytest.mark.parametrize(
    ("end", "late"),
    [
        (RankEnd(rank=1, exit_code=-signal.SIGABRT, finished=True), True),
        (RankEnd(rank=1, exit_code=-signal.SIGSEGV, finished=True), True),
        (RankEnd(rank=1, exit_code=128 + signal.SIGABRT, finished=True), True),
        (RankEnd(rank=1, exit_code=-signal.SIGABRT), False),
        (RankEnd(rank=1, exit_code=-signal.SIGKILL, finished=True), False),  # somebody else's doing
        (RankEnd(rank=1, exit_code=-signal.SIGKILL, finished=True, hung=True), False),
        (RankEnd(rank=1, exit_code=1, finished=True), False),  # the script went on, and failed
        (RankEnd(rank=1, exit_code=255, finished=True), False),
        (RankEnd(rank=1, exit_code=None, finished=True), False),
    ],
)
def test_a_crash_after_the_work_was_done_is_told_and_costs_nothing(end: RankEnd, late: bool) -> None:
    others = RankEnd(rank=0, exit_code=0)
    assert (plan_end(_running(), {1: end}, 5, _NOW, 0.5) is None) is late, "the others train on"
    decision = _end(_running(), others, end, step=5)
    assert (decision.status is TaskStatus.COMPLETED) is late
    told = f"all 2 ranks finished; {end}" if late else f"{end}; all ranks go back to step 5"
    assert decision.reason == told
    assert str(end).endswith("after it had finished its work") is late
    assert parting_of(_running(leaving="host h goes away"), end)[0] is late


def test_a_death_after_progress_is_repaired_at_once() -> None:
    decision = _end(_running(step=10, stalled=2, losses=9), RankEnd(rank=1, exit_code=-9), step=20)
    assert decision.reason == "rank 1 was killed by signal 9 (SIGKILL); all ranks go back to step 20"
    course = decision.course
    assert (course.failures, course.stalled, course.losses, course.retry_at) == (0, 0, 0, _NOW.wall)


def test_three_failures_of_its_own_without_progress_are_enough() -> None:
    last = _row(_running(max_restarts=500), replace(_FAILED, message="ValueError: boom"), 99)[-1]
    assert (last.status, last.course.failures) == (TaskStatus.FAILED, 3)
    assert last.reason == ("rank 0 exited with code 1: ValueError: boom; 3 attempts in a row brought no new checkpoint")


@pytest.mark.parametrize("end", [_KILLED, _LOST_HOST, RankEnd(rank=0, exit_code=None, hindered=True)])
def test_many_losses_in_one_checkpoint_interval_end_nothing(end: RankEnd) -> None:
    decisions = _row(_running(max_restarts=0), end, MAX_LOSSES)
    assert [item.status for item in decisions] == [TaskStatus.RECOVERING] * MAX_LOSSES
    assert {(item.course.failures, item.course.stalled) for item in decisions} == {(0, 0)}


def test_a_loss_budget_is_bounded_and_named() -> None:
    last = _row(_running(max_restarts=0), _KILLED, 999)[-1]
    assert (last.status, last.course.losses) == (TaskStatus.FAILED, MAX_LOSSES + 1)
    assert last.reason == (
        "rank 0 was killed by signal 9 (SIGKILL); 21 losses within 6 hours brought no new checkpoint"
    )


def test_whoever_allows_many_restarts_allows_as_many_losses() -> None:
    assert len(_row(_running(max_restarts=500), _KILLED, 999, every_s=1.0)) == 501


def test_losses_that_are_far_apart_never_end_a_task() -> None:
    decisions = _row(_running(max_restarts=0), _KILLED, 200, every_s=LOSS_WINDOW_S / 10)
    assert {item.status for item in decisions} == {TaskStatus.RECOVERING}
    assert decisions[-1].course.preemptions == 200


def test_the_two_budgets_do_not_touch_each_other() -> None:
    course = _end(_running(failures=3, preemptions=7, stalled=2, losses=4), _KILLED).course
    assert (course.failures, course.stalled, course.preemptions, course.losses) == (3, 2, 8, 5)
    failed = _end(_running(failures=3, losses=4, losses_since=_NOW.wall), _FAILED, step=5)
    assert failed.reason == "rank 0 exited with code 1; its 3 restarts are used up"


@given(
    st.lists(st.tuples(st.sampled_from([_KILLED, _FAILED, _LOST_HOST]), st.booleans()), max_size=60), st.integers(0, 5)
)
def test_every_row_of_ends_is_counted_once_and_is_bounded(row: list[tuple[RankEnd, bool]], max_restarts: int) -> None:
    """Each end counts in exactly one budget; a task is given up for its own failures only by them."""
    task, step = _running(max_restarts=max_restarts), -1
    for number, (end, advanced) in enumerate(row, 1):
        step += advanced
        decision = _end(task, end, step=step)
        course = decision.course
        assert course.failures + course.preemptions == number
        if decision.status is TaskStatus.FAILED:
            over = course.losses > MAX_LOSSES if end.lost else course.failures > max_restarts or course.stalled >= 3
            assert over
            return
        task = replace(task, course=replace(course, step=step))
    assert task.course.failures <= max_restarts


# --- a program that cannot work


@pytest.mark.parametrize(
    "end",
    [
        RankEnd(rank=0, exit_code=1, exception="SyntaxError", message="SyntaxError: '(' was never closed"),
        RankEnd(rank=0, exit_code=1, exception="ModuleNotFoundError", message="ModuleNotFoundError: No module 'x'"),
        RankEnd(rank=0, exit_code=2, exception="usage", message="train.py: error: unrecognized arguments: --ls"),
        RankEnd(rank=0, exit_code=127),
    ],
)
def test_a_program_that_cannot_be_read_is_not_started_again(end: RankEnd) -> None:
    decision = _end(_running(), end)
    assert decision.status is TaskStatus.FAILED
    assert decision.reason == f"{end}; it would end the same way again, so it is not restarted"
    for worked_before in ({"failures": 1}, {"preemptions": 1, "losses": 1}):  # then a file system may be away
        assert _end(_running(**worked_before), end).status is TaskStatus.RECOVERING
    assert _end(_running(), end, step=5).status is TaskStatus.RECOVERING  # it was read and has worked


def test_other_failures_of_a_first_attempt_may_be_flaky() -> None:
    for exception in ("ConnectionError", "OSError", "RuntimeError", ""):
        assert _end(_running(), RankEnd(rank=0, exit_code=1, exception=exception)).status is TaskStatus.RECOVERING


# --- when


@pytest.mark.parametrize(("stalled", "chance", "delay"), [(0, 0.0, 0.5), (0, 1.0, 1.5), (1, 0.5, 2.0)])
def test_without_progress_the_next_attempt_waits_longer_each_time(stalled: int, chance: float, delay: float) -> None:
    decision = _end(_running(stalled=stalled), _FAILED, chance=chance)
    assert decision.course.retry_at - _NOW.wall == pytest.approx(delay)


def test_a_first_loss_is_repaired_at_once_and_a_row_of_them_waits_a_minute_at_most() -> None:
    decisions = _row(_running(), _KILLED, 12)
    waits = [item.course.retry_at - (_NOW.wall + 60.0 * number) for number, item in enumerate(decisions)]
    assert waits == pytest.approx([0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60])


def test_the_next_attempt_waits_for_its_time_and_its_slots() -> None:
    task = _running(placement=("a", "a"), retry_at=1_001.0)
    assert plan_restart(task, [_host(2)], 7, _NOW) is None
    later = _NOW._replace(wall=1_001.0)
    decision = plan_restart(task, [_host(2)], 7, later)
    assert decision is not None
    assert (decision.status, decision.attempt, decision.reason) == (
        TaskStatus.RUNNING,
        2,
        "attempt 2, resumes from step 7",
    )
    assert decision.course.placement == ("a", "a")
    assert decision.course.step == 7
    lacking = plan_restart(task, [_host(1)], 7, later)
    assert lacking is not None
    assert (lacking.status, lacking.attempt) == (TaskStatus.RECOVERING, 1)


def test_a_stopped_task_says_who_had_to_be_killed() -> None:
    task = replace(_running(), reason="stopped by the user")
    ends = {0: RankEnd(rank=0, exit_code=-9, preempted=True)}
    assert plan_stopped(task, ends) is None
    decision = plan_stopped(task, ends | {1: RankEnd(rank=1, exit_code=0, preempted=True)})
    assert decision is not None
    assert (decision.status, decision.reason) == (
        TaskStatus.STOPPED,
        "stopped by the user; rank 0 had to be killed",
    )


# --- leaving for the next attempt

_WELL = [RankEnd(rank=0, exit_code=0), RankEnd(rank=1, exit_code=0)]


def _leaving(stop_at: int = 40) -> Task:
    task = _running(placement=("a", "a"), failures=1)
    planned = plan_leave(task, "there is room for 2 more", Fault(kind=FaultKind.GROWN))
    assert (planned.status, planned.attempt) == (TaskStatus.RUNNING, task.attempt)
    return replace(task, course=replace(planned.course, stop_at=stop_at))


@pytest.mark.parametrize(("step", "left"), [(40, False), (30, True), (41, True)])
def test_a_task_whose_ranks_left_together_starts_again_at_once_on_no_budget(step: int, left: bool) -> None:
    task = _leaving()
    ends = {end.rank: end for end in _WELL}
    decision = plan_end(task, ends, step, _NOW, 0.5, left=left)
    assert decision is not None
    assert decision.status is TaskStatus.RECOVERING
    assert (decision.course.failures, decision.course.preemptions, decision.course.retry_at) == (1, 0, 0.0)
    recovering = replace(task, status=decision.status, course=decision.course)
    restarted = plan_restart(recovering, [_host(2)], step, _NOW)
    assert restarted is not None
    assert restarted.attempt == 2
    assert (restarted.course.leaving, restarted.course.stop_at) == ("", -1)


def test_a_leaving_task_waits_for_its_last_rank() -> None:
    assert plan_end(_leaving(), {0: _WELL[0]}, 40, _NOW, 0.5, left=True) is None


def test_work_that_is_done_before_the_agreed_step_is_completed() -> None:
    assert _end(_leaving(), *_WELL, step=39).status is TaskStatus.COMPLETED


def test_a_rank_that_dies_while_its_task_leaves_counts_as_ever() -> None:
    decision = _end(_leaving(), _KILLED, RankEnd(rank=1, exit_code=0), step=40)
    assert (decision.status, decision.course.preemptions, decision.course.leaving) == (TaskStatus.RECOVERING, 1, "")


def test_the_size_of_a_task_is_that_of_its_attempt() -> None:
    task = _running(workers=4)
    assert task.size == 4
    smaller = replace(task, course=TaskCourse(placement=("a", "b")))
    assert smaller.size == 2
    assert _end(smaller, *_WELL).status is TaskStatus.COMPLETED


# --- leaving


def test_ranks_that_went_because_they_were_asked_to_have_not_finished() -> None:
    left = [RankEnd(rank=rank, exit_code=0, left=True, preempted=rank == 0) for rank in (0, 1)]
    change = _end(_running(), *left, step=7)
    assert change.status is TaskStatus.RECOVERING
    assert change.reason == "its ranks were asked to go: all ranks left at step 7"
    assert (change.course.failures, change.course.preemptions, change.course.losses) == (0, 0, 0)
    assert plan_end(_running(), {0: left[0]}, 7, _NOW, 0.5) is None


def test_a_rank_that_was_stopped_and_did_not_say_that_it_left_is_a_loss() -> None:
    change = _end(_running(leaving="host a goes away"), RankEnd(rank=0, exit_code=0, preempted=True), step=7)
    assert (change.status, change.course.preemptions) == (TaskStatus.RECOVERING, 1)
