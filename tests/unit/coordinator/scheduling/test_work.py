"""What is done for one host or one rank does not grow with the others: it is counted which records are read."""

from collections.abc import Awaitable, Callable

import pytest

from strata.clock import ManualClock
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.beats import take_beat, take_beats
from strata.coordinator.scheduling.progress import status_of
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.scheduling.sights import SLICE, Sights
from strata.coordinator.scheduling.stragglers import StragglerRule, Stragglers
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.membership import Caller
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.trust.proofs import Proofs
from strata.types.tasks import TaskSpec
from strata.types.workers import AgentSpec
from tests.support.counted import Counted
from tests.support.memory_journal import MemoryJournal


class _Fleet:
    """A running task with some ranks on each of so many hosts, and as many tasks and checkpoints that are history."""

    async def open(self, num_hosts: int, slots: int = 2) -> None:
        self.clock = ManualClock()
        self.coordinator = Coordinator(ClusterState(StateConfig()), MemoryJournal(), self.clock)
        await self.coordinator.open()
        self.state = self.coordinator.state
        self.scheduler = Scheduler(self.coordinator, {}, Proofs("token"))
        for number in range(num_hosts):
            self.add_host(f"h{number:04}", slots)
            self.coordinator.apply(c.SubmitTask(task_id=f"old{number}", spec=TaskSpec(name="o", entrypoint=("x",))))
            self.coordinator.apply(c.StopTask(task_id=f"old{number}", reason="of no use"))
        spec = TaskSpec(name="job", worker_count=num_hosts * slots, entrypoint=("true",))
        self.coordinator.apply(c.SubmitTask(task_id="t", spec=spec))
        await self.scheduler.step()
        for rank, host in enumerate(self.state.tasks.task("t").course.placement):
            await self.report(host, rank, pid=1, running=True)
            self.beat(rank)
        for step in range(num_hosts):
            saved = {"checkpoint_id": f"c{step}", "step": step, "epoch": 0, "storage_path": f"p{step}", "size_bytes": 1}
            self.coordinator.apply(c.NotifyCheckpoint(caller=Caller("t-0", "t.1.0"), **saved))  # type: ignore[arg-type]
        await self.scheduler.step()
        self._count()

    def add_host(self, name: str, slots: int) -> None:
        host = AgentSpec(agent_id=name, incarnation="i", hostname=name, address="h", slots=slots)
        self.coordinator.apply(c.AttachAgent(spec=host))
        self.attach(name)

    def _count(self) -> None:
        cluster, pulses = self.state.cluster, (self.state.membership.pulses, self.state.agents.pulses)
        cluster.workers, cluster.agents = Counted(cluster.workers), Counted(cluster.agents)
        cluster.tasks, cluster.checkpoints.records = Counted(cluster.tasks), Counted(cluster.checkpoints.records)
        for each in pulses:
            each._pulses = Counted(each._pulses)
        known = (cluster.workers, cluster.agents, cluster.tasks, cluster.checkpoints.records)
        self._counted = [*known, *(each._pulses for each in pulses)]

    @property
    def num_read(self) -> int:
        return sum(each.num_read for each in self._counted if isinstance(each, Counted))

    def attach(self, name: str) -> None:
        self.scheduler.attach(name, lambda desired: None)

    async def report(self, host: str, rank: int, **what: object) -> None:
        said = ag.ProcessReport(task_id="t", attempt=1, rank=rank, **what)  # type: ignore[arg-type]
        await self.scheduler.report(host, host, said)

    def beat(self, rank: int, **said: bool) -> None:
        status = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=5, step_time_s=0.5, **said)  # type: ignore[arg-type]
        beat = pb.HeartbeatRequest(worker_id=f"t-{rank}", incarnation=f"t.1.{rank}", status=status)
        take_beat(self.state, beat, self.coordinator.now())

    def beat_together(self, *names: str) -> None:
        alike = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING).SerializeToString()
        own = [pb.WorkerStatus(current_step=100 + number).SerializeToString() for number in range(len(names))]
        assert take_beats(self.state, names, alike, own, self.coordinator.now())


async def _beat_together(fleet: _Fleet) -> None:
    fleet.beat_together("t-6", "t-7")


async def _step(fleet: _Fleet) -> None:
    await fleet.scheduler.step()


async def _attach(fleet: _Fleet) -> None:
    fleet.attach("h0003")
    await fleet.scheduler.step()


async def _end_one(fleet: _Fleet) -> None:
    await fleet.report(fleet.state.tasks.task("t").course.placement[7], 7, exit_code=0)
    await fleet.scheduler.step()


async def _tick(fleet: _Fleet) -> None:
    fleet.coordinator.apply(c.Tick())


async def _tick_without_a_host(fleet: _Fleet) -> None:
    fleet.coordinator.apply(c.LoseAgent(agent_id="h0003", reason="silent", left=False))
    fleet.coordinator.apply(c.Tick())


async def _sigterm(fleet: _Fleet) -> None:
    fleet.beat(7, asked_to_stop=True)
    await fleet.scheduler.step()


async def _reads(act: Callable[[_Fleet], Awaitable[None]], num_hosts: int) -> int:
    fleet = _Fleet()
    await fleet.open(num_hosts)
    fleet.coordinator.apply(c.Tick())  # the first one looks at all
    before = fleet.num_read
    await act(fleet)
    return fleet.num_read - before


@pytest.mark.parametrize("act", [_step, _attach, _beat_together, _end_one, _tick, _tick_without_a_host])
async def test_as_much_is_read_in_a_small_cluster_as_in_a_large_one(act: Callable[[_Fleet], Awaitable[None]]) -> None:
    assert await _reads(act, 8) == await _reads(act, 80)


async def test_a_tick_reads_nothing_of_hosts_that_may_come_back() -> None:
    fleet = _Fleet()
    await fleet.open(8)
    fleet.coordinator.apply(c.Tick())  # the first one looks at all
    for agent_id in fleet.state.agents.alive():
        fleet.state.agents.suspect(agent_id)
    before = fleet.num_read
    fleet.coordinator.apply(c.Tick())
    assert fleet.num_read == before


async def test_what_ranks_said_together_is_read_when_somebody_asks_and_once() -> None:
    fleet = _Fleet()
    await fleet.open(4)
    fleet.beat_together("t-6", "t-7")
    workers, pulses = fleet.state.membership.workers, fleet.state.membership.pulses
    assert isinstance(pulses.of("t-6").report, bytes)
    status = status_of(workers["t-6"], pulses)
    assert status == pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=100)
    assert status_of(workers["t-6"], pulses) is status
    assert isinstance(pulses.of("t-7").report, bytes)


async def test_a_rank_that_was_sent_sigterm_makes_its_task_leave() -> None:
    fleet = _Fleet()
    await fleet.open(4)
    await _sigterm(fleet)
    assert fleet.state.tasks.task("t").course.leaving == "rank 7 was sent SIGTERM"


async def test_a_word_of_a_process_before_is_not_the_rank_s() -> None:
    fleet = _Fleet()
    await fleet.open(4)
    fleet.beat(7, asked_to_stop=True, left=True)
    fleet.coordinator.apply(c.LoseWorkers(gone={"t-7": "killed"}))
    assert (fleet.state.membership.asked_in("t"), fleet.state.membership.any_leaves("t")) == ([], False)


async def _sights(num_ranks: int) -> tuple[_Fleet, Sights]:
    fleet = _Fleet()
    await fleet.open(4, slots=num_ranks // 4)
    stragglers = Stragglers(fleet.state.membership.pulses, StragglerRule())
    return fleet, Sights(fleet.coordinator, fleet.scheduler.hangs, stragglers)


async def test_many_ranks_are_looked_at_in_slices_with_pauses() -> None:
    fleet, sights = await _sights(2_400)
    assert sights.begin()
    for num_whole in (0, 0, 1):
        assert not sights.begin()
        before = fleet.num_read
        seen = sights.go_on()
        assert [(len(sight.pauses), len(sight.times)) for sight in seen] == [(2_400, 2_400)] * num_whole
        assert 0 < fleet.num_read - before < 10 * SLICE
        before = fleet.num_read
        assert (sights.go_on(), fleet.num_read) == ([], before)
        fleet.clock.advance(0.2)
    assert sights.begin()


async def test_a_look_is_in_vain_when_somebody_goes_meanwhile() -> None:
    fleet, sights = await _sights(1_200)
    for gone, num_whole in ((True, 0), (False, 1)):
        assert sights.begin()
        assert sights.go_on() == []
        fleet.clock.advance(1.0)
        if gone:
            fleet.coordinator.apply(c.LoseWorkers(gone={"t-7": "killed"}))
        assert len(sights.go_on()) == num_whole
        fleet.clock.advance(1.0)


async def test_small_tasks_are_seen_beside_a_large_one() -> None:
    fleet, sights = await _sights(1_200)
    spec = TaskSpec(name="small", worker_count=1, entrypoint=("true",))
    fleet.add_host("small", 1)
    fleet.coordinator.apply(c.SubmitTask(task_id="s", spec=spec))
    await fleet.scheduler.step()
    assert sights.begin()
    seen = [sight.task.task_id for sight in sights.go_on()]
    fleet.clock.advance(1.0)
    seen += [sight.task.task_id for sight in sights.go_on()]
    assert seen == ["t", "s"]
