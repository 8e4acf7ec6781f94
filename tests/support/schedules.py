"""Random lives of a whole cluster: workers that crash, pause and retry, a network that drops, delays, repeats and
reorders, a coordinator that dies with or without its last writes. One seed is one schedule.
"""

import random
from typing import Any

from strata.clock import ManualClock
from strata.cluster import events as e
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import SaveAttempt, Verdict, Vote
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.replies import JoinReply
from strata.errors import Fenced, StrataError, UnknownWorker
from strata.types.barriers import BarrierArrival, BarrierPolicy
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus, incarnation_of, worker_id_of
from strata.types.workers import WorkerSpec
from tests.support.actors import Mode, Process
from tests.support.history import History, Violation
from tests.support.memory_journal import MemoryJournal
from tests.support.simulation import Call, Node

__all__ = ["run_schedule"]

TASK = "job"


class World:
    """Everything in one schedule. `act` is one random step of somebody."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        plain = self.rng.random() < 0.2
        self.mode = Mode(
            policy=self.rng.choice((BarrierPolicy.FAIL, BarrierPolicy.FAIL, BarrierPolicy.SHRINK, BarrierPolicy.WAIT)),
            sized=(sized := not plain and self.rng.random() < 0.4),
            started=sized and self.rng.random() < 0.5,
            plain=plain,
            reuse=not plain and self.rng.random() < 0.7,
        )
        self.clock = ManualClock()
        self.journal = MemoryJournal(keeps=not plain)
        self.history = History()
        self.node = Node(self.journal, self.clock, self.history)
        if self.mode.sized:
            size = self.rng.randint(2, 4)
            spec = TaskSpec(name="job", worker_count=size, entrypoint=("python",))
            self.node.apply(c.SubmitTask(task_id=TASK, spec=spec))
        self.node.flush()
        self.journal.hold = True
        self.calm = self.rng.random() < 0.5  # few faults: long enough quiet for barriers and checkpoints to end well
        self._number = 0
        self.requests: list[Call] = []
        self.cancels: list[Call] = []
        self.processes: list[Process] = []
        self.late: list[Process] = []  # ranks of earlier attempts that nobody could reach to end them
        if self.mode.started:
            self._begin_attempt()
            return
        for slot in range(size if self.mode.sized else self.rng.randint(2, 5)):
            self.processes.append(self._process(f"w{slot}"))

    @property
    def task_id(self) -> str:
        return TASK if self.mode.sized else ""

    def _process(self, worker_id: str) -> Process:
        self._number += 1
        return Process(worker_id, f"i{self._number}")

    def _begin_attempt(self) -> None:
        """As the scheduler does it: the old ranks are lost, the attempt is durable, then new processes are started."""
        task = self.node.state.tasks.task(TASK)
        gone = {process.worker_id: "its gang is restarted" for process in self.processes}
        self.node.apply(c.LoseWorkers(gone=gone))
        number = task.attempt + 1
        change = c.ChangeTask(task_id=TASK, status=TaskStatus.RUNNING, reason="", attempt=number, course=TaskCourse())
        self.node.apply(change)
        self.node.flush()
        self.late += [process for process in self.processes if not process.dead]
        ranks = range(task.spec.worker_count)
        self.processes = [Process(worker_id_of(TASK, rank), incarnation_of(TASK, number, rank)) for rank in ranks]

    # --- one random step

    def act(self) -> None:
        choice = self.rng.random() * (0.9 if self.calm and self.rng.random() < 0.8 else 1.0)
        if choice < 0.28:
            for _ in range(self.rng.randint(1, 4)):
                self.deliver_request()
        elif choice < 0.45:
            for _ in range(self.rng.randint(1, 4)):
                self.deliver_response()
        elif choice < 0.68:
            for _ in range(self.rng.randint(1, 4)):
                late = self.late and self.rng.random() < 0.2
                self._let_act(self.rng.choice(self.late if late else self.processes))
        elif choice < 0.81:
            self.node.flush()
        elif choice < 0.88:
            self._pass_time(self.rng.choice((0.1, 0.5, 2.0)))
        elif choice < 0.9:
            self._pass_time(self.rng.choice((4.0, 11.0)))
        elif choice < 0.93:
            self._disturb_network()
        elif choice < 0.95:
            self._disturb(self.rng.choice(self.processes))
        elif choice < 0.962:
            self.crash_coordinator()
        elif choice < 0.985:
            self.deliver_cancel()
        else:
            self.node.save_snapshot()

    def _pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for process in self.processes:
            if process.registered and not process.paused and not process.dead and self.rng.random() < 0.85:
                self._beat(process)
        self.node.apply(c.Tick())

    def _disturb_network(self) -> None:
        if not self.requests:
            return
        call = self.rng.choice(self.requests)
        if self.rng.random() < 0.5:
            self.requests.remove(call)
        elif not self.mode.plain:  # a plain arrival repeated after its answer is a new one, by contract
            self.requests.append(call)

    def _disturb(self, process: Process) -> None:
        if self.rng.random() < 0.5:
            process.paused = not process.paused
            return
        if process.call is not None and self.rng.random() < 0.7:
            self.cancels.append(process.call)
        process.dead = True
        if self.mode.started:
            self._begin_attempt()
            return
        again = self.rng.random() < 0.6
        self._number += 1
        self.processes.remove(process)
        self.processes.append(self._process(process.worker_id if again else f"w{self._number}"))

    def crash_coordinator(self) -> None:
        """Before or after its last flush. Connections die with it; answers already sent may still be on their way. If
        its host loses power, too, they are heard before anybody comes back to the next one."""
        if self.rng.random() < (0.1 if self.node.kept() else 0.5):
            self.node.flush()
        outbox = [item for item in self.node.outbox if self.rng.random() < 0.5]
        power = self.rng.random() < 0.3
        if power:
            for call, result in outbox:
                call.answer(result)
            outbox = []
        self.journal.crash(power=power)
        self.history.on_crash(self.node.kept(), power=power)
        self.requests.clear()
        self.cancels.clear()
        if self.rng.random() < 0.3:
            self.clock.advance(self.rng.choice((1.0, 15.0)))
        self.node = Node(self.journal, self.clock, self.history)
        self.node.outbox.extend(outbox)

    # --- the network

    def deliver_request(self) -> None:
        if self.requests:
            call = self.requests.pop(self.rng.randrange(len(self.requests)))
            if not (call.cancelled and self.rng.random() < 0.5):
                self.node.receive(call)
                if call.cancelled:
                    self.node.hang_up(call)
            if self.node.kept() and self.rng.random() < 0.4:  # the moment in which most can go wrong
                self.crash_coordinator()

    def deliver_cancel(self) -> None:
        if self.cancels:
            call = self.cancels.pop(self.rng.randrange(len(self.cancels)))
            call.cancelled = True
            self.node.hang_up(call)

    def deliver_response(self) -> None:
        if self.node.outbox:
            call, result = self.node.outbox.pop(self.rng.randrange(len(self.node.outbox)))
            if self.rng.random() < 0.93:
                call.answer(result)

    # --- what processes do

    def _let_act(self, process: Process) -> None:
        if process.paused:
            return
        if process.call is not None:
            self._retry(process)
        elif not process.registered:
            self._send(process, c.RegisterWorker(spec=self._spec(process)))
        elif process.stale:
            self._beat(process)
        else:
            self._choose(process)

    def _retry(self, process: Process) -> None:
        assert process.call is not None
        if self.rng.random() < 0.4:
            self.cancels.append(process.call)
            if isinstance(process.call.command, c.Arrive) and self.rng.random() < 0.1:
                process.call = None  # the user's own deadline: it gives this arrival up
                process.arrivals += 1
                return
            self._send(process, process.call.command)

    def _choose(self, process: Process) -> None:
        choice = self.rng.random()
        caller = self._caller(process)
        attempt = process.attempt
        if attempt is not None and attempt.open and (attempt.unvoted() == () or process.rank not in attempt.votes):
            self._save(process)
        elif choice < 0.5:
            self.arrive(process)
        elif choice < 0.55:
            self._beat(process)
        elif choice < 0.92 and not self.mode.plain:
            self._save(process)
        elif choice < 0.97:
            self._number += 1
            spec = TaskSpec(name=f"job-{self._number}", worker_count=2, entrypoint=("python",))
            request_id = f"{process.incarnation}-task-{self._number}"
            self._send(process, c.SubmitTask(task_id=f"task-{self._number}", spec=spec, request_id=request_id))
        elif choice < 0.985:
            self._send(process, c.DeregisterWorker(caller=caller))

    def _save(self, process: Process) -> None:
        caller, attempt = self._caller(process), process.attempt
        if attempt is None or not attempt.open or self.rng.random() < 0.1:
            step = self.clock.monotonic() // 20
            begin = c.BeginCheckpoint(caller=caller, step=int(step), epoch=0, storage_path="", deadline_s=30)
            self._send(process, begin)
        elif attempt.verdict is Verdict.PREPARED:
            self._send(process, c.CommitCheckpoint(caller=caller, attempt=attempt.attempt))
        else:
            vote = Vote(manifest_key="k", manifest_hash=process.incarnation, size_bytes=1, duration_s=1.0)
            name = attempt.attempt
            self._send(process, c.VoteCheckpoint(caller=caller, attempt=name, rank=process.rank, vote=vote))

    def arrive(self, process: Process) -> None:
        caller = self._caller(process)
        arrival = BarrierArrival(
            worker_id=process.worker_id,
            barrier_id="b",
            step=0 if self.mode.reuse else process.arrivals,
            policy=self.mode.policy,
            request_id="" if self.mode.plain else f"{process.incarnation}-{process.arrivals}",
            incarnation=caller.incarnation,
            generation=caller.generation,
        )
        if arrival.request_id:
            self.history.on_issued(arrival.worker_id, arrival.request_id)
        self._send(process, c.Arrive(arrival=arrival))

    def _spec(self, process: Process) -> WorkerSpec:
        incarnation = "" if self.mode.plain else process.incarnation
        rank = int(process.worker_id.rpartition("-")[2]) if self.mode.started else None
        return WorkerSpec(worker_id=process.worker_id, task_id=self.task_id, incarnation=incarnation, rank=rank)

    def _caller(self, process: Process) -> Caller:
        if self.mode.plain:
            return Caller(worker_id=process.worker_id)
        return Caller(
            worker_id=process.worker_id, incarnation=process.incarnation, generation=max(process.generation, 0)
        )

    def _send(self, process: Process, command: c.Command[Any]) -> None:
        call = Call(process.worker_id, command, lambda result: None, told=process.told, task_id=self.task_id)
        call.answer = lambda result: self._on_answer(process, call, result)
        process.call = call
        self.requests.append(call)

    def _beat(self, process: Process) -> None:
        told = self.node.beat(process.worker_id, "" if self.mode.plain else process.incarnation, process.told)
        if isinstance(told, StrataError):
            self._on_error(process, told)
        else:
            process.generation, process.stale = told, False

    def _on_answer(self, process: Process, call: Call, result: object) -> None:
        if process.call is not call or process.paused:
            return
        process.call = None
        match result:
            case StrataError():
                self._on_error(process, result)
            case JoinReply():
                process.registered = isinstance(call.command, c.RegisterWorker)
                process.generation, process.rank = result.generation, result.rank
            case e.BarrierReleased():
                process.arrivals += 1
                process.releases += 1
                process.told = max(process.told, self.history.position_of(result))
            case e.BarrierBroke():
                process.arrivals += 1
                process.stale = True
            case SaveAttempt():
                process.attempt = result
            case _:
                pass

    def _on_error(self, process: Process, error: StrataError) -> None:
        if isinstance(error, Fenced) and "generation" in error.message:
            process.stale = True
        elif isinstance(error, UnknownWorker) or (self.mode.plain and isinstance(error, Fenced)):
            process.registered = False
        elif error.message.startswith("fenced") and process in self.late:
            process.dead = True
            self.late.remove(process)
        elif error.message.startswith("fenced") and process in self.processes:  # the SDK ends this process
            process.dead = True
            if self.mode.started:
                self._begin_attempt()
                return
            self.processes.remove(process)
            self.processes.append(self._process(process.worker_id))
        process.attempt = None

    # --- and in the end all is well

    def settle(self) -> None:
        """The network heals and nobody fails any more: everybody has to get through barriers again."""
        self.rng = random.Random(1)
        for process in list(self.late):
            self._send(process, c.RegisterWorker(spec=self._spec(process)))
        marks: dict[int, int] = {}
        for turn in range(70):
            self.clock.advance(1.0)
            for process in list(self.processes):
                process.paused = False
                if process.registered:
                    self._beat(process)
            for process in list(self.processes):
                self._settle_one(process)
            self._drain()
            self.node.apply(c.Tick())
            self.node.flush()
            self._drain()
            if turn == 40:
                marks = {id(process): process.releases for process in self.processes}
        stuck = [item.worker_id for item in self.processes if item.releases < marks.get(id(item), item.releases) + 2]
        if stuck and self.mode.policy is not BarrierPolicy.WAIT:
            raise Violation(f"no more barriers for {stuck}: {self.node.state.barriers.open}")

    def _settle_one(self, process: Process) -> None:
        if process.call is not None:
            self.cancels.append(process.call)
            self._send(process, process.call.command)
        elif not process.registered:
            self._send(process, c.RegisterWorker(spec=self._spec(process)))
        elif not process.stale:
            self.arrive(process)

    def _drain(self) -> None:
        while self.requests or self.cancels or self.node.outbox:
            while self.cancels:
                self.deliver_cancel()
            for call in [self.requests.pop(0) for _ in range(len(self.requests))]:
                if not call.cancelled:
                    self.node.receive(call)
            self.node.flush()
            while self.node.outbox:
                call, result = self.node.outbox.pop(0)
                call.answer(result)


def run_schedule(seed: int, steps: int = 120) -> World:
    """Raises Violation, with the seed, when a promise is broken."""
    world = World(seed)
    try:
        for _ in range(steps):
            world.act()
        world.node.check_replay()
        if world.mode.reuse and seed % 5 == 0:
            world.settle()
            world.node.check_replay()
    except Violation as violation:
        raise Violation(f"seed {seed}, {world.mode}: {violation}") from None
    return world
