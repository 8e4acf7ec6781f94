"""Who hangs: deadlines, excuses, and whose fault it is when several ranks stand still."""

from dataclasses import replace
from typing import Any

import pytest

from strata.cluster.tasks import Task
from strata.coordinator.scheduling.hangs import Hangs
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus
from tests.support.pure_cluster import PureCluster

_TRAINING = pb.WorkerStatus.TRAINING


class _Job:
    """A task of some ranks, which say how far they are, and the judge over them."""

    def __init__(self, workers: int = 3, *, default_s: float | None = None, **spec: Any) -> None:
        self.cluster = PureCluster()
        self.names = [f"t-{rank}" for rank in range(workers)]
        for rank, name in enumerate(self.names):
            self.cluster.join(name, task_id="t", rank=rank, agent_id="host")
        self.hangs = Hangs(self.cluster.state, default_s)
        given = TaskSpec(name="t", worker_count=workers, entrypoint=("x",), **spec)
        self.task = Task(
            task_id="t",
            spec=given,
            submitted_at=0.0,
            status=TaskStatus.RUNNING,
            attempt=1,
            reason="attempt 1",
            course=TaskCourse(placement=("host",) * workers),
        )

    def say(self, rank: int, step: int, **status: Any) -> None:
        told = {"state": _TRAINING, "step_time_s": 0.5, **status}
        said = pb.WorkerStatus(current_step=step, **told)
        self.cluster.state.membership.pulses.beat(self.names[rank], said, self.cluster.now())

    def all_say(self, step: int, **status: Any) -> None:
        for rank in range(len(self.names)):
            self.say(rank, step, **status)

    def answer(self, rank: int, where: str = "x.py:1 (f)", *, waiting: bool = False) -> None:
        word = self.hangs.look_of(self.task, rank)
        report = ag.ProcessReport(task_id="t", attempt=1, rank=rank, running=True)
        report.look, report.where, report.waiting = word, where, waiting
        self.hangs.hear_standing(report)

    def judge(self, without: int = -1) -> TaskCourse:
        """After one look of the judge: the task's course, with its reason taken over."""
        members, now = self.cluster.state.membership.alive_in("t"), self.cluster.now().monotonic
        pauses = [pause for pause in self.hangs.pauses(self.task, members, now) if pause.rank != without]
        verdict = self.hangs.judge(self.task, pauses, now)
        if verdict is not None:
            self.task = replace(self.task, reason=verdict[0], course=verdict[1])
        return self.task.course

    def wait(self, seconds: float) -> TaskCourse:
        self.cluster.clock.advance(seconds)
        return self.judge()

    def sentenced(self) -> int | None:
        """The rank that is ended once nobody can be expected to answer any more."""
        self.judge()
        course = self.wait(5.0)
        return None if course.hung_s is None else course.stuck_rank


def _begun(job: _Job, step: int = 7, **status: Any) -> _Job:
    job.all_say(step, **status)
    job.judge()
    return job


def test_a_rank_is_named_after_a_minute_and_the_guilty_ended_after_ten() -> None:
    job = _begun(_Job())
    job.say(0, 8)
    assert job.wait(59).stuck_rank is None
    assert (job.wait(3).stuck_rank, job.task.course.stuck_step, job.hangs.asks(job.task)) == (1, 7, False)
    words = "rank 1 has made no step for over 1 min (step 7), and neither has rank 2"
    assert job.task.reason == f"{words}; who is at fault is ended after 600 s"
    job.wait(540)
    assert (job.hangs.asks(job.task), job.task.course.hung_s) == (True, None)
    for rank in range(3):
        job.answer(rank)
    assert job.judge().hung_s == pytest.approx(602)
    assert job.task.reason == "rank 1 hangs: no step for 602 s at step 7; it is being ended"


def test_of_many_that_stand_still_the_first_are_named() -> None:
    job = _begun(_Job(64))
    job.wait(10)
    for rank in range(2, 64, 3):  # these go on
        job.say(rank, 8)
    job.judge()
    job.wait(55)
    others = "ranks 1, 3, 4, 6, 7, 9, 10, 12 and 34 more"
    assert f"rank 0 has made no step for over 1 min (step 7), and neither have {others}; who" in job.task.reason


def test_the_time_is_told_in_three_digits() -> None:
    job = _begun(_Job(1, config={"hang_timeout_s": 5.0}), step_time_s=0.300661)
    job.wait(10)
    assert job.task.reason.startswith("rank 0 has made no step for over 9.02 s (step 7);")


def test_one_that_moves_again_is_no_longer_named() -> None:
    job = _begun(_Job(1))
    assert job.wait(70).stuck_rank == 0
    job.say(0, 8)
    assert job.judge().stuck_rank is None
    assert job.task.reason == "attempt 1"


def test_its_own_steps_and_pauses_make_the_deadline_longer() -> None:
    slow = _begun(_Job(1), step_time_s=60.0)
    slow.wait(1_790)
    assert slow.sentenced() is None
    slow.wait(10)
    assert slow.sentenced() == 0
    paused = _begun(_Job(1))
    paused.wait(500)  # an evaluation without a section, which ended by itself
    paused.say(0, 8)
    paused.judge()
    paused.wait(1_400)
    assert paused.sentenced() is None
    paused.wait(200)
    assert paused.sentenced() == 0


def test_without_a_known_step_time_or_with_finished_peers_nothing_is_learned() -> None:
    for job, without in ((_begun(_Job(2), step_time_s=0.0), -1), (_begun(_Job(2)), 1)):
        job.cluster.clock.advance(100_000)
        job.judge(without)
        job.cluster.clock.advance(5)
        assert job.judge(without).hung_s is None
        assert job.task.course.stuck_rank == 0


def test_what_is_set_counts_alone_and_off_ends_nothing() -> None:
    short = _begun(_Job(1, hang_timeout_s=5.0), step_time_s=20.0)
    short.wait(5.5)
    assert short.sentenced() == 0
    of_the_cluster = _begun(_Job(1, default_s=5.0))
    of_the_cluster.wait(5.5)
    assert of_the_cluster.sentenced() == 0
    off = _begun(_Job(1, default_s=5.0, hang_timeout_s=0.0))
    off.hangs.hear_stopped("host", ["t-0"], off.cluster.now().monotonic)
    assert off.wait(5_000).stuck_rank == 0
    assert (off.sentenced(), off.hangs.asks(off.task)) == (None, False)


@pytest.mark.parametrize(
    "status",
    [
        {"section": "eval"},
        {"state": pb.WorkerStatus.CHECKPOINTING},
        {"state": pb.WorkerStatus.RECOVERING},
    ],
)
def test_who_waits_for_a_section_or_a_save_does_not_hang(status: dict[str, Any]) -> None:
    job = _begun(_Job(hang_timeout_s=5.0))
    job.say(1, 7, **status)
    job.wait(500)
    assert (job.sentenced(), job.task.course.stuck_rank) == (None, None)
    job.say(1, 7)
    job.wait(6)
    assert job.sentenced() is not None


def test_one_that_has_made_no_step_yet_does_not_hang() -> None:
    job = _begun(_Job(hang_timeout_s=5.0), 0, state=pb.WorkerStatus.INITIALIZING)
    job.wait(500)
    assert job.sentenced() is None


def test_who_waits_for_a_rank_that_is_replaced_in_place_does_not_hang() -> None:
    job = _begun(_Job(hang_timeout_s=5.0))
    job.wait(4)
    job.task = replace(job.task, course=replace(job.task.course, lives=(0, 1, 0)))
    job.wait(4)  # the world has changed: everybody's time begins anew
    job.say(1, 0, state=pb.WorkerStatus.INITIALIZING, step_time_s=0.0)
    job.wait(500)
    assert job.sentenced() is None
    job.all_say(8)
    job.judge()
    job.wait(6)
    assert job.sentenced() == 0


def test_a_section_may_have_a_limit_of_its_own() -> None:
    job = _begun(_Job(hang_timeout_s=500.0))
    job.say(2, 7, section="eval", section_timeout_s=20.0)
    job.judge()
    job.wait(21)
    assert job.sentenced() == 2
    again = _begun(_Job())
    again.say(2, 7, section="eval", section_timeout_s=20.0)
    again.wait(15)
    again.say(2, 7)
    again.wait(15)
    assert again.sentenced() is None


def test_a_newcomer_beyond_the_limit_of_its_section_is_ended() -> None:
    job = _begun(_Job())
    job.task = replace(job.task, course=replace(job.task.course, lives=(0, 0, 1)))
    job.say(2, 7, section="load", section_timeout_s=20.0)
    job.judge()
    job.wait(21)
    assert job.sentenced() == 2


# --- whose fault


def _all_late(**spec: Any) -> _Job:
    job = _begun(_Job(4, hang_timeout_s=5.0, **spec))
    job.wait(6)
    return job


def test_who_waits_for_others_is_not_at_fault() -> None:
    job = _all_late()
    for rank in (0, 1, 3):
        job.answer(rank, "gang.py:38 (sum)", waiting=True)
    job.answer(2, "train.py:7 (hang)")
    assert job.judge().stuck_rank == 2


def test_nor_is_one_that_cannot_be_asked_when_another_stands_elsewhere() -> None:
    job = _all_late()
    for rank in (0, 1):
        job.answer(rank, waiting=True)
    job.answer(3)
    assert job.sentenced() == 3


def test_the_lowest_step_is_at_fault_when_nobody_can_tell() -> None:
    job = _Job(4, hang_timeout_s=5.0)
    for rank, step in enumerate((9, 9, 8, 9)):
        job.say(rank, step)
    job.judge()
    job.wait(6)
    assert job.sentenced() == 2


def test_who_is_missing_at_a_barrier_is_at_fault() -> None:
    job = _begun(_Job(3, hang_timeout_s=5.0))
    for rank in (0, 2):
        job.say(rank, 7, section="barrier epoch", at_barrier=True)
        job.cluster.arrive(f"t-{rank}")
    job.wait(6)
    assert job.sentenced() == 1
    assert job.hangs.look_of(job.task, 0) == ""


def test_a_rank_that_counts_no_steps_may_be_at_fault() -> None:
    """Only rank 0 logs; it waits for rank 3."""
    job = _Job(4, hang_timeout_s=5.0)
    job.say(0, 7)
    for rank in (1, 2, 3):
        job.say(rank, 0, state=pb.WorkerStatus.INITIALIZING, step_time_s=0.0)
    job.judge()
    job.wait(6)
    for rank in (0, 1, 2):
        job.answer(rank, waiting=True)
    job.answer(3)
    assert job.judge().stuck_rank == 3


def test_a_stopped_process_hangs_whatever_it_was_doing() -> None:
    job = _begun(_Job(3, hang_timeout_s=5.0))
    job.say(1, 7, section="eval")
    job.judge()
    for _ in range(7):  # as its agent says with every beat
        job.hangs.hear_stopped("host", ["t-1"], job.cluster.now().monotonic)
        job.wait(1)
    assert job.sentenced() == 1
    going_on = _begun(_Job(3, hang_timeout_s=5.0))
    going_on.hangs.hear_stopped("host", ["t-1"], going_on.cluster.now().monotonic)
    going_on.wait(4)
    going_on.hangs.hear_stopped("host", [], going_on.cluster.now().monotonic)
    going_on.all_say(8)
    going_on.wait(4)
    assert going_on.sentenced() is None


def test_answers_to_an_older_question_do_not_count() -> None:
    job = _all_late()
    stale = ag.ProcessReport(task_id="t", attempt=1, rank=2, running=True, look="0.0", where="x.py:1 (f)")
    job.hangs.hear_standing(stale)
    for rank in (0, 1, 3):
        job.answer(rank, waiting=True)
    assert job.judge().hung_s is None


def test_what_is_decided_is_not_decided_again() -> None:
    job = _all_late()
    rank = job.sentenced()
    before = job.task
    job.all_say(8)
    job.wait(60)
    assert (job.task, job.task.course.stuck_rank) == (before, rank)
