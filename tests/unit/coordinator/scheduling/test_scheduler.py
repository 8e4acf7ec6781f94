"""The scheduler's agents: a stream that ended is told nothing more, and a newer one of the same agent stays."""

from strata.clock import ManualClock
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.protocol.generated import agents_pb2 as ag
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
