"""Why a task stands as it does: the first cause of what was seen, its cost, and `unknown` instead of a guess."""

from dataclasses import replace
from typing import Any

import pytest

from strata.cluster.tasks import Task
from strata.observatory.answers.why import Verdict, VerdictKind
from strata.observatory.cluster.advice import ADVICE
from strata.observatory.cluster.timeline import Facts, Interruption, Timeline
from strata.observatory.cluster.why import BadPoint, Case, plan_interruption, plan_verdict
from strata.types.faults import Fault, FaultKind
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus

KILLED = Fault(kind=FaultKind.KILLED, attempt=1, rank=1, agent_id="a", text="rank 1 was killed by signal 9 (SIGKILL)")
FOLLOWED = Fault(kind=FaultKind.FOLLOWED, attempt=1, rank=0, text="rank 0 exited with code 75")
NAN = BadPoint(metric="loss", value="nan", step=40, rank=1, at=155.0)


def task(status: TaskStatus = TaskStatus.RUNNING, **course: Any) -> Task:
    spec = TaskSpec(name="t", worker_count=3)
    placed = TaskCourse(placement=("a", "a", "b"), **course)
    return Task(task_id="t1", spec=spec, submitted_at=90.0, started_at=100.0, status=status, attempt=2, course=placed)


def killed_once() -> Timeline:
    """Started at 100, killed at 160, started again at 165 from step 40."""
    timeline = Timeline()
    timeline.change("running", 1, "attempt 1", 100.0, -1, 3)
    timeline.change("recovering", 1, "rank 1 was killed; all ranks go back to step 40", 160.0, -1)
    timeline.change("running", 2, "attempt 2, resumes from step 40", 165.0, 40, 3)
    return timeline


FACTS = {1: Facts(working_at=105.0, top_step=55, resumed_step_at=145.0), 2: Facts(working_at=170.0)}


def verdict(*faults: Fault, in_place: bool = False, **known: Any) -> Verdict:
    what = Interruption(attempt=1, number=1, at=160.0, faults=faults, in_place=in_place)
    case = {"task": task(), "timeline": killed_once(), "facts": FACTS, "hosts": {"a": "node-a"}, "now": 180.0}
    return plan_verdict(Case(**{**case, "interruption": what, **known}))


def fault(kind: FaultKind, exception: str = "", text: str = "") -> Fault:
    return Fault(kind=kind, attempt=1, rank=1, agent_id="a", text=text or f"rank 1: {exception}", exception=exception)


def test_a_kill_is_told_in_one_sentence() -> None:
    told = verdict(FOLLOWED, KILLED)
    assert (told.kind, told.rank, told.host, told.hit_ranks, told.step) == ("killed", 1, "node-a", [0, 2], 55)
    assert told.seconds_lost == pytest.approx(15 + 10), "the work since step 40, and the time until work went on"
    assert told.sentence.startswith(
        "Rank 1 was killed by signal 9 (SIGKILL) (on node-a). It interrupted ranks 0, 2 and it cost 25 s. Neither "
    )
    assert [seen.text for seen in told.evidence][:2] == [FOLLOWED.text, KILLED.text]


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (fault(FaultKind.EXCEPTION, "KeyError"), "exception"),
        (fault(FaultKind.EXCEPTION, "ModuleNotFoundError"), "import_error"),
        (fault(FaultKind.EXCEPTION, "usage"), "usage"),
        (fault(FaultKind.EXCEPTION, "StorageFull"), "disk_full"),
        (fault(FaultKind.EXCEPTION, "OSError", "OSError: [Errno 28] No space left on device: 'x'"), "disk_full"),
        (fault(FaultKind.HINDERED, "", "rank 1 could not be started: No space left on device"), "disk_full"),
        (fault(FaultKind.HINDERED, "", "rank 1 could not be started: port 2000 is taken"), "cannot_start"),
        (fault(FaultKind.EXCEPTION, "StorageAccessDenied"), "storage_refused"),
        (fault(FaultKind.EXCEPTION, "OutOfMemoryError"), "out_of_memory"),
        (fault(FaultKind.OUT_OF_MEMORY), "out_of_memory"),
        (fault(FaultKind.CRASH), "crash"),
        (fault(FaultKind.HANG), "hang"),
        (fault(FaultKind.SUSPENDED), "suspended"),
        (fault(FaultKind.HOST_LOST), "host_lost"),
        (fault(FaultKind.DRAINED), "host_drained"),
        (fault(FaultKind.ASKED), "asked_to_stop"),
        (fault(FaultKind.STRAGGLER), "straggler"),
    ],
)
def test_what_was_seen_is_a_kind_with_advice(seen: Fault, kind: str) -> None:
    told = verdict(seen)
    assert (told.kind, told.rank) == (kind, 1)
    assert told.sentence.endswith(told.advice)


@pytest.mark.parametrize(
    "seen",
    [FOLLOWED, fault(FaultKind.UNSEEN), fault(FaultKind.EXCEPTION, "PeerLost"), fault(FaultKind("of a newer release"))],
)
def test_who_only_tells_of_another_is_not_blamed(seen: Fault) -> None:
    told = verdict(seen)
    assert (told.kind, told.rank, told.host, told.hit_ranks) == ("unknown", None, None, [0, 1, 2])


def test_an_exception_that_tells_of_a_peer_gives_way_to_the_peer() -> None:
    told = verdict(replace(fault(FaultKind.EXCEPTION, "ConnectionResetError"), rank=0), fault(FaultKind.CRASH))
    assert (told.kind, told.rank) == ("crash", 1)


def test_a_loss_that_is_no_number_is_the_cause_of_an_exit_but_not_of_a_key_error() -> None:
    assert verdict(fault(FaultKind.EXIT), bad_point=NAN).kind == "bad_loss"
    assert verdict(fault(FaultKind.EXCEPTION, "FloatingPointError"), bad_point=NAN).kind == "bad_loss"
    assert verdict(fault(FaultKind.EXCEPTION, "ValueError", "ValueError: loss is NaN"), bad_point=NAN).rank == 1
    other = verdict(replace(fault(FaultKind.EXIT), rank=0), bad_point=NAN)
    assert (other.rank, other.host) == (1, None), "rank 0 only looked at the sum"
    unrelated = verdict(fault(FaultKind.EXCEPTION, "KeyError"), bad_point=NAN)
    assert unrelated.kind == "exception"
    assert unrelated.evidence[0].text == "loss was nan at step 40"
    assert verdict(KILLED, bad_point=NAN).kind == "killed"


def test_what_nobody_measured_costs_null() -> None:
    assert verdict(KILLED, facts={}).seconds_lost is None
    assert verdict(KILLED, timeline=Timeline()).seconds_lost is None
    assert verdict(KILLED, in_place=True).seconds_lost is None
    assert verdict(KILLED, in_place=True, went_on_at=163.0).seconds_lost == pytest.approx(3.0)
    assert verdict(fault(FaultKind.EXCEPTION, "SyntaxError"), facts={}).seconds_lost == pytest.approx(60 + 20)


def test_of_a_failed_task_the_work_since_its_checkpoint_is_lost() -> None:
    timeline = killed_once()
    del timeline.attempts[2]
    told = verdict(KILLED, task=task(TaskStatus.FAILED), timeline=timeline, saved_step=40)
    assert told.seconds_lost == pytest.approx(15.0)
    assert verdict(KILLED, task=task(TaskStatus.FAILED), timeline=timeline, saved_step=55).seconds_lost == 0


@pytest.mark.parametrize(
    ("known", "kind", "rank"),
    [
        (task(), "none", None),
        (task(TaskStatus.COMPLETED), "none", None),
        (task(TaskStatus.STOPPED), "stopped", None),
        (task(TaskStatus.QUEUED), "waiting", None),
        (task(TaskStatus.FAILED), "unknown", None),
        (task(stuck_rank=2, stuck_step=7), "hang", 2),
        (task(slow_rank=0), "straggler", 0),
    ],
)
def test_a_task_that_nothing_interrupted(known: Task, kind: str, rank: int | None) -> None:
    told = plan_verdict(Case(task=known))
    assert (told.kind, told.rank) == (kind, rank)


def test_a_coordinator_that_was_started_anew_is_nobodys_fault() -> None:
    told = plan_verdict(Case(task=task(), restarted_at=130.0))
    assert (told.kind, told.seconds_lost, told.hit_ranks) == ("coordinator_restarted", 0.0, [])
    assert plan_verdict(Case(task=task(), restarted_at=95.0)).kind == "none", "before the task began"


def test_the_newest_interruption_is_meant_or_the_one_near_a_moment() -> None:
    timeline = killed_once()
    for attempt, number, at in ((1, 1, 160.0), (2, 2, 300.0)):
        assert timeline.interrupt(Interruption(attempt=attempt, number=number, at=at, faults=(KILLED,)))
    assert not timeline.interrupt(Interruption(attempt=2, number=2, at=301.0, faults=()))
    chosen = plan_interruption(task(), timeline)
    assert chosen is not None
    assert chosen.at == 300.0
    near = plan_interruption(task(), timeline, 200.0)
    assert near is not None
    assert near.at == 160.0
    assert plan_interruption(task(TaskStatus.STOPPED), timeline) is None
    assert plan_interruption(task(stuck_rank=0), timeline) is None


def test_every_kind_has_advice() -> None:
    assert ADVICE.keys() == set(VerdictKind)
