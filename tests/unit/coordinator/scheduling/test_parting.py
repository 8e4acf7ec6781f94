"""The step at which ranks leave together: proposed ahead of them, agreed upon when all have heard of it in time."""

from dataclasses import replace

from strata.cluster.members import Agent, Worker
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.draining import hearing_s, plan_departure
from strata.coordinator.scheduling.parting import HEARING_S, plan_parting
from strata.coordinator.state.now import Now
from strata.coordinator.state.pulses import Pulses
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus

_NOW = Now(monotonic=50.0, wall=1_000.0)


def _worker(rank: int) -> Worker:
    return Worker(
        worker_id=f"t-{rank}", task_id="t", incarnation="i", rank=rank, hostname="h", port=0, gpu_count=0,
        memory_bytes=0, agent_id="a", metadata={}, joined_at=0.0,
    )  # fmt: skip


def _said(*statuses: pb.WorkerStatus) -> tuple[list[Worker], Pulses]:
    pulses = Pulses(lease_s=5.0)
    workers = [_worker(rank) for rank in range(len(statuses))]
    for worker, status in zip(workers, statuses, strict=True):
        pulses.start(worker.worker_id, _NOW)
        pulses.beat(worker.worker_id, status, _NOW)
    return workers, pulses


def _at(step: int, step_time_s: float = 0.1, **values: object) -> pb.WorkerStatus:
    return pb.WorkerStatus(current_step=step, step_time_s=step_time_s, **values)  # type: ignore[arg-type]


def _planned(course: TaskCourse, *statuses: pb.WorkerStatus) -> TaskCourse:
    found = plan_parting(course, *_said(*statuses))
    assert found is not None
    return found


def test_a_step_is_proposed_beyond_what_the_fastest_rank_does_while_the_word_travels() -> None:
    assert _planned(TaskCourse(), _at(100, 0.1), _at(101, 0.25)).stop_at == 101 + round(HEARING_S / 0.1)
    assert _planned(TaskCourse(), _at(7, 60.0)).stop_at == 8
    assert _planned(TaskCourse(), _at(7, 0.0)).stop_at == 9


def test_nothing_is_proposed_to_ranks_that_have_made_no_step() -> None:
    assert plan_parting(TaskCourse(), *_said(_at(0, 0.0), _at(0, 0.0))) is None
    assert plan_parting(TaskCourse(), *_said()) is None


def test_a_step_is_agreed_when_every_rank_has_heard_of_it_in_time() -> None:
    course = TaskCourse(stop_at=120)
    assert plan_parting(course, *_said(_at(101, stop_heard=120), _at(101))) is None
    assert plan_parting(course, *_said(_at(101, stop_heard=120), _at(101, stop_heard=110))) is None
    assert _planned(course, _at(101, stop_heard=120), _at(0, stop_heard=120)) == replace(course, stop_agreed=True)
    assert plan_parting(replace(course, stop_agreed=True), *_said(_at(125, stop_heard=120))) is None


def test_a_rank_that_had_passed_the_step_makes_it_a_later_one() -> None:
    course = _planned(TaskCourse(stop_at=120), _at(119, stop_heard=120), _at(150, stop_heard=120, stop_passed=True))
    assert not course.stop_agreed
    assert course.stop_at >= 150 + 2 * 30  # as far again as it went meanwhile, twice


# --- draining


def _agent(agent_id: str, draining: str = "", deadline: float | None = None) -> Agent:
    return Agent(
        agent_id=agent_id, incarnation="i", hostname=agent_id, address="", slots=2, gpu_count=0, memory_bytes=0,
        version="", joined_at=0.0, draining=draining, deadline=deadline,
    )  # fmt: skip


def _saved(duration_s: float | None) -> CheckpointInfo:
    return CheckpointInfo(
        id="c", step=400, epoch=0, path="p", size_bytes=1, created_at=1.0, status=CheckpointStatus.COMPLETED,
        task_id="t", duration_s=duration_s,
    )  # fmt: skip


def _task(**course: object) -> Task:
    given = TaskCourse(placement=("a", "b"), **course)  # type: ignore[arg-type]  # test's own fields
    spec = TaskSpec(name="t", worker_count=2, entrypoint=("x",))
    return Task(task_id="t", spec=spec, submitted_at=0.0, status=TaskStatus.RUNNING, attempt=1, course=given)


def _departure(task: Task, *agents: Agent, saved: CheckpointInfo | None = None, asked: bool = False) -> str | None:
    going = [agent for agent in agents if agent.draining]
    change = plan_departure(task, going, [1] if asked else [], saved, _NOW)
    return change.course.leaving if change else None


def test_a_task_leaves_a_host_that_goes_away() -> None:
    assert _departure(_task(), _agent("a"), _agent("b")) is None
    assert _departure(_task(), _agent("a"), _agent("b", "drained")) == "host b goes away (drained)"
    both = _departure(_task(), _agent("a", "spot"), _agent("b", "spot"))
    assert both == "host a, b goes away (spot)"
    assert _departure(_task(leaving="to grow"), _agent("a", "drained"), _agent("b")) is None


def test_a_rank_that_somebody_sent_sigterm_makes_its_task_leave() -> None:
    assert _departure(_task(), _agent("a"), _agent("b"), asked=True) == "rank 1 was sent SIGTERM"


def test_a_save_that_takes_longer_than_there_is_time_is_said_up_front() -> None:
    going = _agent("b", "spot", deadline=1_030.0)
    told = _departure(_task(), _agent("a"), going, saved=_saved(45.2))
    assert told is not None
    assert "the last save took 45 s, the host goes in 30 s: the work since step 400 may be lost" in told
    for saved in (None, _saved(None), _saved(20.0)):
        assert _departure(_task(), _agent("a"), going, saved=saved) == "host b goes away (spot)"


def test_the_agreed_step_is_nearer_when_time_is_short() -> None:
    going = [_agent("b", "spot", deadline=1_030.0)]
    assert hearing_s([], None, _NOW) == HEARING_S
    assert hearing_s([_agent("b", "drained")], None, _NOW) == HEARING_S
    assert hearing_s(going, _saved(5.0), _NOW) == HEARING_S
    assert hearing_s(going, _saved(26.0), _NOW) == 1.0
    assert hearing_s(going, _saved(45.0), _NOW) == 0.5
