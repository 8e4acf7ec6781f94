"""A task's way through the scheduler with agents that only listen: launched once, repaired as a whole, the same after
any restart of the coordinator, crashes before durability included.
"""

import pytest

from strata.clock import ManualClock
from strata.cluster.tasks import Task
from strata.config import RANK_VARIABLES
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.errors import Conflict, UnknownTask
from strata.protocol.generated import agents_pb2 as ag
from strata.trust.proofs import Proofs
from strata.types.tasks import TaskSpec, TaskStatus
from strata.types.workers import AgentSpec
from tests.support.memory_journal import MemoryJournal


class _Agent:
    """Starts what it is told, once per attempt and rank, and remembers; its host outlives coordinators."""

    def __init__(self, name: str, slots: int) -> None:
        self.spec = AgentSpec(agent_id=name, incarnation="i", hostname=name, address=name, slots=slots)
        self.started: list[tuple[int, int]] = []
        self.wanted: list[ag.DesiredProcess] = []

    def push(self, desired: ag.DesiredState) -> None:
        self.wanted = list(desired.processes)
        for item in self.wanted:
            if not item.stop and (item.attempt, item.rank) not in self.started:
                self.started.append((item.attempt, item.rank))


class _World:
    """A coordinator that can be killed and started over the same journal."""

    def __init__(self, *agents: _Agent) -> None:
        self.agents = agents
        self.clock = ManualClock()
        self.journal = MemoryJournal()

    async def boot(self) -> None:
        self.journal.crash()
        self.journal.hold = False
        self.coordinator = Coordinator(ClusterState(StateConfig()), self.journal, self.clock)
        await self.coordinator.open()
        self.scheduler = Scheduler(self.coordinator, {}, Proofs("token"))
        for agent in self.agents:
            self.coordinator.apply(c.AttachAgent(spec=agent.spec))
            self.scheduler.attach(agent.spec.agent_id, agent.push)

    async def submit(self, workers: int, **values: int) -> None:
        spec = TaskSpec(name="job", entrypoint=("x",), worker_count=workers, **values)  # type: ignore[arg-type]  # ints only
        self.coordinator.apply(c.SubmitTask(task_id="t", spec=spec, request_id="r"))
        await self.scheduler.step()

    @property
    def task(self) -> Task:
        return self.coordinator.state.tasks.task("t")

    async def report(self, agent: _Agent, attempt: int, rank: int, **values: object) -> None:
        message = ag.ProcessReport(task_id="t", attempt=attempt, rank=rank, **values)  # type: ignore[arg-type]  # test's own
        await self.scheduler.report(agent.spec.agent_id, agent.spec.hostname, message)
        await self.scheduler.step()

    async def run_all(self, agent: _Agent, attempt: int, workers: int) -> None:
        for rank in range(workers):
            await self.report(agent, attempt, rank, pid=100 + rank, running=True)


async def _running(workers: int = 2, **values: int) -> tuple[_World, _Agent]:
    agent = _Agent("a", workers)
    world = _World(agent)
    await world.boot()
    await world.submit(workers, **values)
    await world.run_all(agent, 1, workers)
    return world, agent


async def test_ranks_are_told_their_place() -> None:
    world, agent = await _running()
    assert world.task.status is TaskStatus.RUNNING
    env = [dict(item.env) for item in agent.wanted]
    assert [item["RANK"] for item in env] == [item["LOCAL_RANK"] for item in env] == ["0", "1"]
    assert {item["WORLD_SIZE"] for item in env} == {item["LOCAL_WORLD_SIZE"] for item in env} == {"2"}
    assert {item["MASTER_ADDR"] for item in env} == {"a"}
    assert len({item["MASTER_PORT"] for item in env}) == 1
    assert {name for name in env[0] if name.startswith("STRATA_")} <= RANK_VARIABLES.keys()
    assert env[0]["STRATA_GANG_PORT"] not in ("0", env[0]["MASTER_PORT"])
    members = world.coordinator.state.membership.alive_in("t")
    assert [(member.worker_id, member.incarnation) for member in members] == [("t-0", "t.1.0"), ("t-1", "t.1.1")]


async def test_a_death_ends_all_ranks_before_any_is_started_again() -> None:
    world, agent = await _running()
    port = agent.wanted[0].env["MASTER_PORT"]
    await world.report(agent, 1, 1, exit_code=-9)
    assert world.task.status is TaskStatus.RECOVERING
    assert [(item.rank, item.stop, item.grace_s) for item in agent.wanted] == [(0, True, 0.0), (1, True, 0.0)]
    world.clock.advance(5.0)
    await world.scheduler.step()
    assert world.task.attempt == 1
    await world.report(agent, 1, 0, exit_code=-9, stopped=True)
    assert (world.task.status, world.task.attempt) == (TaskStatus.RUNNING, 2)
    assert agent.started == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert agent.wanted[0].env["MASTER_PORT"] != port


async def test_a_late_word_of_an_old_attempt_changes_nothing() -> None:
    world, agent = await _running()
    await world.report(agent, 1, 1, exit_code=1)
    await world.report(agent, 1, 0, exit_code=-9, stopped=True)
    world.clock.advance(5.0)
    await world.scheduler.step()
    await world.run_all(agent, 2, 2)
    await world.report(agent, 1, 0, exit_code=1)
    await world.report(agent, 1, 1, running=True)
    assert (world.task.status, world.task.attempt) == (TaskStatus.RUNNING, 2)
    assert len(world.coordinator.state.membership.alive_in("t")) == 2


async def test_no_attempt_is_launched_twice_whenever_the_coordinator_dies() -> None:
    agent = _Agent("a", 2)
    world = _World(agent)
    await world.boot()
    world.journal.hold = True
    world.coordinator.apply(c.SubmitTask(task_id="t", spec=TaskSpec(name="job", entrypoint=("x",)), request_id="r"))
    await world.boot()  # killed before the submission was durable: nobody was promised anything
    assert "t" not in world.coordinator.state.tasks.tasks
    assert agent.started == []
    await world.submit(2)
    for _ in range(3):
        await world.boot()
        await world.scheduler.step()
        await world.run_all(agent, 1, 2)
    assert agent.started == [(1, 0), (1, 1)]
    await world.report(agent, 1, 0, exit_code=0)
    await world.boot()
    await world.scheduler.step()
    assert world.task.status is TaskStatus.RUNNING
    await world.report(agent, 1, 0, exit_code=0)
    await world.report(agent, 1, 1, exit_code=0)
    assert (world.task.status, agent.started) == (TaskStatus.COMPLETED, [(1, 0), (1, 1)])


async def test_a_rank_that_finished_early_keeps_its_place_until_somebody_waits_for_it() -> None:
    world, agent = await _running()
    membership = world.coordinator.state.membership
    await world.report(agent, 1, 0, exit_code=0)
    for _ in range(10):
        world.clock.advance(10.0)
        membership.pulses.touch("t-1", world.coordinator.now())
        await world.scheduler.step()
        world.coordinator.apply(c.Tick())
    assert len(membership.alive_in("t")) == 2
    assert membership.groups["t"].fence == 0


async def test_a_lost_host_is_a_preemption_and_the_gang_moves() -> None:
    first, second = _Agent("a", 2), _Agent("b", 2)
    world = _World(first, second)
    await world.boot()
    await world.submit(2, max_restarts=0)
    await world.run_all(first, 1, 2)
    assert set(world.task.course.placement) == {"a"}
    world.scheduler.detach("a", first.push)
    for _ in range(8):
        world.clock.advance(5.0)
        world.coordinator.state.agents.beat("b", None, world.coordinator.now())
        world.coordinator.apply(c.Tick())
        await world.scheduler.step()
    assert (world.task.status, world.task.attempt) == (TaskStatus.RUNNING, 2)
    assert world.task.course.placement == ("b", "b")
    assert (world.task.course.failures, world.task.course.preemptions) == (0, 1)
    assert second.started == [(2, 0), (2, 1)]


async def test_stop_waits_for_every_rank() -> None:
    world, agent = await _running()
    world.coordinator.apply(c.StopTask(task_id="t"))
    await world.scheduler.step()
    assert all(item.stop and item.grace_s > 0 for item in agent.wanted)
    await world.report(agent, 1, 0, exit_code=0, stopped=True)
    assert world.task.status is TaskStatus.STOPPING
    await world.report(agent, 1, 1, exit_code=-9, stopped=True)
    assert (world.task.status, world.task.reason) == (
        TaskStatus.STOPPED,
        "stopped by the user; rank 1 had to be killed",
    )
    assert agent.wanted == []
    assert world.coordinator.state.membership.alive_in("t") == []


async def test_a_failed_task_is_resumed_with_its_id_its_attempts_and_fresh_budgets() -> None:
    world, agent = await _running(max_restarts=0)
    await world.report(agent, 1, 1, exit_code=1)
    assert (world.task.status, world.task.course.failures) == (TaskStatus.FAILED, 1)
    assert world.task.completed_at is not None
    world.coordinator.apply(c.ResumeTask(task_id="t"))
    resumed = world.coordinator.state.tasks.task("t")
    assert (resumed.status, resumed.attempt, resumed.completed_at) == (TaskStatus.QUEUED, 1, None)
    assert world.task.reason == "resumed by the user, to go on at step 0, for it has no checkpoint"
    await world.report(agent, 1, 0, exit_code=-9, stopped=True)  # a late word of what was ended
    await world.boot()  # killed while it was in the queue
    await world.scheduler.step()
    assert (world.task.status, world.task.attempt, world.task.course.failures) == (TaskStatus.RUNNING, 2, 0)
    assert agent.started == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert world.task.started_at is not None
    await world.run_all(agent, 2, 2)
    for rank in range(2):
        await world.report(agent, 2, rank, exit_code=0)
    assert world.task.status is TaskStatus.COMPLETED


async def test_only_what_has_stopped_or_failed_can_be_resumed() -> None:
    world, agent = await _running()
    with pytest.raises(Conflict, match="task 't' is running: only a stopped or failed task can be resumed"):
        world.coordinator.apply(c.ResumeTask(task_id="t"))
    for rank in range(2):
        await world.report(agent, 1, rank, exit_code=0)
    with pytest.raises(Conflict, match="task 't' is completed: there is nothing to resume"):
        world.coordinator.apply(c.ResumeTask(task_id="t"))
    with pytest.raises(UnknownTask):
        world.coordinator.apply(c.ResumeTask(task_id="nobody"))


async def test_a_stop_in_a_hurry_gives_no_grace() -> None:
    world, agent = await _running()
    world.coordinator.apply(c.StopTask(task_id="t", reason="stopped by Ctrl-C"))
    await world.scheduler.step()
    assert all(item.grace_s > 0 for item in agent.wanted)
    world.coordinator.apply(c.StopTask(task_id="t", reason="again", hurry=True))
    await world.scheduler.step()
    assert [(item.stop, item.grace_s) for item in agent.wanted] == [(True, 0.0), (True, 0.0)]
    assert world.task.reason == "stopped by Ctrl-C"


async def test_ranks_left_by_a_lost_host_still_hold_their_slots_when_the_task_is_resumed() -> None:
    """They may still run there: nobody else gets their place before the agent has said that they are gone."""
    world, agent = await _running(max_restarts=0)
    await world.report(agent, 1, 1, exit_code=1)  # rank 0 is still being ended
    world.coordinator.apply(c.ResumeTask(task_id="t"))
    await world.scheduler.step()
    assert (world.task.status, world.task.attempt) == (TaskStatus.QUEUED, 1)
    assert world.task.reason == "waiting for 2 slots: 1 of 2 are free on 1 local agent"
    await world.report(agent, 1, 0, exit_code=-15, stopped=True)
    assert (world.task.status, world.task.attempt) == (TaskStatus.RUNNING, 2)
