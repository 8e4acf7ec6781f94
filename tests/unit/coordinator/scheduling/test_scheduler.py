"""The scheduler's agents: a stream that ended is told nothing more, and a newer one of the same agent stays."""

import asyncio

from strata.clock import ManualClock
from strata.cluster import events as e
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


async def opened(clock: ManualClock | None = None) -> Coordinator:
    coordinator = Coordinator(ClusterState(StateConfig()), MemoryJournal(), clock or ManualClock())
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
    clock, stream = ManualClock(), Stream()
    coordinator = await opened(clock)
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
    clock.advance(0.5)
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


async def test_a_loss_is_told_before_the_world_that_is_made_of_it() -> None:
    """A step that comes in the turn in which a rank has ended decides by that end; ranks that heard of the loss after
    the new world left that world, too, and waited for another one that never came."""
    coordinator, made, _ = await _with_two_ranks(pb.WorkerStatus.TAKES_PART)
    heard: list[type[e.Event]] = []
    coordinator.listen(lambda event: heard.append(type(event)))
    ended = ag.ProcessReport(task_id="t", attempt=1, rank=1, exit_code=-9)
    await asyncio.gather(made.report("host", "h", ended), made.step())
    assert coordinator.state.tasks.task("t").course.lives == (0, 1)
    assert heard == [e.MembersLost, e.TaskChanged]


async def test_the_gang_starts_anew_where_a_rank_has_not_said_that_it_takes_part() -> None:
    coordinator, made, _ = await _with_two_ranks(pb.WorkerStatus.UNSAID)
    await made.report("host", "h", ag.ProcessReport(task_id="t", attempt=1, rank=1, exit_code=-9))
    await made.step()
    assert coordinator.state.tasks.task("t").status is TaskStatus.RECOVERING


async def test_an_agent_of_one_task_is_told_when_that_is_over() -> None:
    coordinator, stream = await opened(), Stream()
    made = Scheduler(coordinator, {}, Proofs("token"))
    coordinator.apply(c.SubmitTask(task_id="t", spec=TaskSpec(name="job", entrypoint=("true",))))
    for name, task_id in (("own", "t"), ("lost", "unknown")):
        spec = AgentSpec(agent_id=name, incarnation="i", hostname="h", address="h", slots=1, task_id=task_id)
        coordinator.apply(c.AttachAgent(spec=spec))
    made.attach("own", stream.push)
    await made.step()
    assert [process.task_id for process in stream.told[-1].processes] == ["t"]
    assert not stream.told[-1].over
    await made.report("own", "h", ag.ProcessReport(task_id="t", attempt=1, rank=0, exit_code=0))
    await made.step()
    assert stream.told[-1].over
    other = Stream()
    made.attach("lost", other.push)
    await made.step()
    assert other.told[-1].over, "its task is not known here"


async def _with_hosts(number: int) -> tuple[Coordinator, Scheduler, list[e.MembersLost]]:
    """A running task with one rank on each of so many hosts, and the losses that happen to it."""
    coordinator = await opened()
    made = Scheduler(coordinator, {}, Proofs("token"))
    lost: list[e.MembersLost] = []
    coordinator.listen(lambda event: lost.append(event) if isinstance(event, e.MembersLost) else None)
    for name in [f"h{place}" for place in range(number)]:
        spec = AgentSpec(agent_id=name, incarnation="i", hostname="h", address="h", slots=1)
        coordinator.apply(c.AttachAgent(spec=spec))
        made.attach(name, Stream().push)
    coordinator.apply(c.SubmitTask(task_id="t", spec=TaskSpec(name="job", worker_count=number, entrypoint=("true",))))
    await made.step()
    for rank, host in enumerate(coordinator.state.tasks.task("t").course.placement):
        await made.report(host, "h", ag.ProcessReport(task_id="t", attempt=1, rank=rank, pid=1, running=True))
    return coordinator, made, lost


async def test_ranks_that_end_in_one_turn_are_lost_together() -> None:
    coordinator, made, lost = await _with_hosts(20)
    placement = coordinator.state.tasks.task("t").course.placement
    ended = [ag.ProcessReport(task_id="t", attempt=1, rank=rank, exit_code=-9) for rank in range(20)]
    await asyncio.gather(*(made.report(host, "h", ended[rank]) for rank, host in enumerate(placement)))
    assert [len(event.worker_ids) for event in lost] == [20]
    assert coordinator.state.membership.num_alive("t") == 0


async def test_the_members_of_a_task_that_is_over_leave_together() -> None:
    coordinator, made, lost = await _with_hosts(20)
    placement = coordinator.state.tasks.task("t").course.placement
    for rank, host in enumerate(placement):
        await made.report(host, "h", ag.ProcessReport(task_id="t", attempt=1, rank=rank, exit_code=0))
    await made.step()
    assert coordinator.state.tasks.task("t").status is TaskStatus.COMPLETED
    assert [(len(event.worker_ids), event.left) for event in lost] == [(20, True)]
