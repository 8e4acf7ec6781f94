"""The scheduler's agents: a stream that ended is told nothing more, and a newer one of the same agent stays."""

from strata.clock import ManualClock
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.beats import take_beat
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.trust.proofs import Proofs
from strata.types.tasks import TaskSpec, TaskStatus
from strata.types.workers import AgentSpec
from tests.support.memory_journal import MemoryJournal


class Stream:
    """One agent's session: `push` is a bound method, as in rpc/agents.py."""

    def __init__(self) -> None:
        self.told: list[ag.DesiredState] = []

    def push(self, desired: ag.DesiredState) -> None:
        self.told.append(desired)


async def opened() -> Coordinator:
    coordinator = Coordinator(ClusterState(StateConfig()), MemoryJournal(), ManualClock())
    await coordinator.open()
    return coordinator


async def scheduler() -> Scheduler:
    return Scheduler(await opened(), {}, Proofs("token"))


async def test_nothing_is_placed_where_no_stream_is() -> None:
    coordinator, stream = await opened(), Stream()
    made = Scheduler(coordinator, {}, Proofs("token"))
    host = AgentSpec(agent_id="host", incarnation="i", hostname="h", address="h", slots=4)
    coordinator.apply(c.AttachAgent(spec=host))
    made.attach("host", stream.push)
    made.detach("host", stream.push)
    spec = TaskSpec(name="job", entrypoint=("true",))
    coordinator.apply(c.SubmitTask(task_id="t", spec=spec))
    await made.step()
    assert coordinator.state.tasks.task("t").status is TaskStatus.QUEUED
    made.attach("host", stream.push)
    await made.step()
    assert coordinator.state.tasks.task("t").status is TaskStatus.RUNNING
    assert [process.task_id for process in stream.told[-1].processes] == ["t"]


async def test_the_end_of_an_old_stream_leaves_the_new_one_alone() -> None:
    made, old, new = await scheduler(), Stream(), Stream()
    made.attach("host", old.push)
    made.attach("host", new.push)
    made.detach("host", old.push)
    await made.step()
    assert (len(old.told), len(new.told)) == (0, 1)


async def test_an_agent_that_comes_back_is_told_again() -> None:
    made, stream = await scheduler(), Stream()
    for _ in range(2):
        made.attach("host", stream.push)
        await made.step()
        made.detach("host", stream.push)
    assert len(stream.told) == 2


async def _with_two_ranks(in_place: "pb.WorkerStatus.InPlace.ValueType") -> tuple[Coordinator, Scheduler, Stream]:
    """A running task of two ranks that have beaten."""
    coordinator, stream = await opened(), Stream()
    made = Scheduler(coordinator, {}, Proofs("token"))
    coordinator.apply(
        c.AttachAgent(spec=AgentSpec(agent_id="host", incarnation="i", hostname="h", address="h", slots=4))
    )
    made.attach("host", stream.push)
    coordinator.apply(c.SubmitTask(task_id="t", spec=TaskSpec(name="job", worker_count=2, entrypoint=("true",))))
    await made.step()
    for rank in range(2):
        await made.report("host", "h", ag.ProcessReport(task_id="t", attempt=1, rank=rank, pid=1, running=True))
        beat = pb.HeartbeatRequest(
            worker_id=f"t-{rank}", incarnation=f"t.1.{rank}", status=pb.WorkerStatus(in_place=in_place)
        )
        take_beat(coordinator.state, beat, coordinator.now())
    made._watched_at = -1.0
    await made.step()
    return coordinator, made, stream


async def test_a_dead_rank_is_replaced_in_place_where_all_take_part() -> None:
    coordinator, made, stream = await _with_two_ranks(pb.WorkerStatus.TAKES_PART)
    before = coordinator.state.tasks.task("t").course
    await made.report("host", "h", ag.ProcessReport(task_id="t", attempt=1, rank=1, exit_code=-9))
    await made.step()
    task = coordinator.state.tasks.task("t")
    assert (task.status, task.attempt, task.course.lives) == (TaskStatus.RUNNING, 1, (0, 1))
    assert (task.course.master_port, task.course.gang_port) != (before.master_port, before.gang_port)
    wanted = {item.rank: item for item in stream.told[-1].processes}
    assert (wanted[0].life, wanted[0].env["STRATA_INCARNATION"]) == (0, "t.1.0")
    assert (wanted[1].life, wanted[1].env["STRATA_INCARNATION"]) == (1, "t.1.1.1")
    assert wanted[1].env["STRATA_WORLD_NUMBER"] == "1"
    # The first process's end is told again, by an agent that came back: it is not the newcomer's.
    await made.report("host", "h", ag.ProcessReport(task_id="t", attempt=1, rank=1, exit_code=-9))
    await made.report("host", "h", ag.ProcessReport(task_id="t", attempt=1, rank=1, life=1, pid=2, running=True))
    await made.step()
    assert coordinator.state.tasks.task("t").course.lives == (0, 1)
    assert coordinator.state.membership.workers["t-1"].incarnation == "t.1.1.1"


async def test_the_gang_starts_anew_where_a_rank_has_not_said_that_it_takes_part() -> None:
    coordinator, made, _ = await _with_two_ranks(pb.WorkerStatus.UNSAID)
    await made.report("host", "h", ag.ProcessReport(task_id="t", attempt=1, rank=1, exit_code=-9))
    await made.step()
    assert coordinator.state.tasks.task("t").status is TaskStatus.RECOVERING
