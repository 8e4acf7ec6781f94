"""One life of a coordinator without a loop or a disk: the pure state over a journal that can lose its last writes.

It does what coordinator.py does, call by call, so that a simulation can stop it between any two of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from strata.clock import ManualClock
from strata.cluster import events as e
from strata.cluster.tasks import Task
from strata.coordinator.engine.snapshots import Snapshots
from strata.coordinator.journal.base import Record
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.now import read_clock
from strata.coordinator.state.outcomes import Outcome
from strata.coordinator.state.replies import BarrierReply, JoinReply
from strata.errors import StrataError
from strata.types.barriers import BarrierKey
from tests.support.history import History, Violation
from tests.support.memory_journal import MemoryJournal

__all__ = ["Call", "Node"]

CONFIG = StateConfig(worker_lease_s=10.0, barrier_timeout_s=120.0)


@dataclass(slots=True, eq=False)
class Call:
    """One RPC as both ends see it. `answer` is called with what comes back, if anything does."""

    worker_id: str
    command: c.Command[Any]
    answer: Callable[[object], None]
    cancelled: bool = False
    told: tuple[int, int] = (0, 0)  # the newest release that the caller knows, which was not durable then
    task_id: str = ""
    accepted_as: str = ""  # the incarnation that the coordinator took the caller for


@dataclass(slots=True)
class _Reply:
    seq: int
    call: Call
    result: object
    accepted: tuple[str, int, int, str] | None = None


class Node:
    """One life of a coordinator: the shell of coordinator.py, without a loop. Replies wait for the journal."""

    def __init__(self, journal: MemoryJournal, clock: ManualClock, history: History) -> None:
        self._journal = journal
        self._clock = clock
        self._history = history
        self._replies: list[_Reply] = []
        self._undurable: list[tuple[int, e.Event]] = []
        self._appended = 0
        self._waiting: dict[tuple[BarrierKey, int, str], list[Call]] = {}
        self._named_tasks = 0
        self.outbox: list[tuple[Call, object]] = []
        self.state = ClusterState(CONFIG)
        self._snapshots = Snapshots(self.state)
        self._open()

    def _open(self) -> None:
        now = read_clock(self._clock)
        stored = self._journal.begin(self._on_durable)
        self._snapshots.restore(stored, now)
        self.seq = self.durable = stored.last_seq
        self.state.renew_leases(now)
        generations = {name: group.generation for name, group in self.state.membership.groups.items()}
        self._history.check_after_restart(set(self.state.tasks.tasks), generations)
        self.apply(c.Start(cluster_id="sim", after=self.seq))

    # --- commands

    def apply(self, command: c.Command[Any]) -> object:
        now = read_clock(self._clock)
        applied = self.state.apply(command, now)
        if isinstance(applied.reply, BarrierReply) and isinstance(command, c.Arrive):
            repeated = applied.reply.outcome is not None and not applied.events
            if not repeated:
                self._history.on_arrival(applied.reply.key, applied.reply.round, command.arrival)
        if applied.events:
            self._history.on_applied(applied.events)
            self._append(applied.events, now.wall, may_be_told=isinstance(command, c.Arrive))
        self._history.on_closed(self.state.barriers.open, self._waited_for())
        return applied.reply

    def _append(self, events: list[e.Event], at: float, *, may_be_told: bool) -> None:
        records = []
        for event in events:
            self.seq += 1
            records.append(Record(self.seq, at, type(event).__name__, e.encode_event(event)))
            self._snapshots.note(records[-1])
            self._undurable.append((self.seq, event))
        if may_be_told and self.durable >= self._appended and self._journal.keep(*records):
            (event,) = events
            assert isinstance(event, e.BarrierReleased)
            self._history.on_kept(event, (self.state.term, self.seq))
            self._announce(event)
            return
        self._appended = self.seq
        self._journal.append(records)

    def kept(self) -> list[e.Event]:
        """What was told, is in the journal's place for that, and not durable."""
        return [event for seq, event in self._undurable if self.durable < seq and self._history.is_kept(event)]

    def receive(self, call: Call) -> None:
        """A request arrives. Its caller may have given it up long ago, if the connection has not told yet."""
        if self._has_forgotten(call.worker_id, call.told):
            self.outbox.append((call, StrataError("fenced: out")))
            return
        try:
            reply = self.apply(self._named(call.command))
        except StrataError as error:
            self.outbox.append((call, error))
            return
        if isinstance(reply, BarrierReply) and reply.outcome is None:
            assert isinstance(call.command, c.Arrive)
            decided = self._history.outcome_of(call.worker_id, call.command.arrival.request_id)
            if decided is not None:
                raise Violation(f"{call.worker_id} waits although it was decided: {decided}")
            call.accepted_as = self.state.membership.workers[call.worker_id].incarnation
            self._waiting.setdefault((reply.key, reply.round, call.worker_id), []).append(call)
            return
        result = reply.outcome if isinstance(reply, BarrierReply) else reply
        rests_on = 0 if isinstance(result, Outcome) and self._history.is_kept(result) else self.seq
        self._replies.append(_Reply(rests_on, call, result, self._accepted(call)))
        self._release()

    def _named(self, command: c.Command[Any]) -> c.Command[Any]:
        """A task gets its id where it arrives, as in rpc/control.py."""
        if not isinstance(command, c.SubmitTask):
            return command
        self._named_tasks += 1
        return replace(command, task_id=f"task-{self.state.term}-{self._named_tasks}")

    def _accepted(self, call: Call) -> tuple[str, int, int, str] | None:
        worker = self.state.membership.workers.get(call.worker_id)
        if worker is None or not worker.alive:
            return None
        return worker.task_id, worker.rank, self.state.membership.group_of(worker).generation, worker.incarnation

    def _has_forgotten(self, worker_id: str, told: tuple[int, int]) -> bool:
        """As rpc/ties.py has it: who passed a barrier of which nobody knows any more is lost."""
        if not self.state.cluster.has_forgotten(*told):
            return False
        self.apply(c.LoseWorkers(gone={worker_id: "it passed a barrier that is forgotten"}))
        return True

    def beat(self, worker_id: str, incarnation: str, told: tuple[int, int]) -> int | StrataError:
        """A heartbeat: not journaled, answered at once; the generation it tells must be durable."""
        now = read_clock(self._clock)
        if self._has_forgotten(worker_id, told):
            return StrataError("fenced: out")
        try:
            worker = self.state.membership.authorize(Caller(worker_id=worker_id, incarnation=incarnation), now)
        except StrataError as error:
            return error
        self.state.membership.pulses.beat(worker_id, None, now)
        self.flush()
        generation = self.state.membership.group_of(worker).generation
        self._history.on_told(worker.task_id, generation)
        return generation

    def hang_up(self, call: Call) -> None:
        """The connection tells that the caller gave up."""
        for place, calls in list(self._waiting.items()):
            if call in calls:
                calls.remove(call)
                if not calls:
                    del self._waiting[place]
                    self.state.barriers.withdraw(*place)
                    self._history.on_gave_up(*place)
        self._history.on_closed(self.state.barriers.open, self._waited_for())

    def _waited_for(self) -> set[BarrierKey]:
        """Barriers where a live process waits; the dead that still hold a call are fenced when that is durable."""
        decided = {
            (BarrierKey(event.task_id, event.barrier_id, event.step), event.round)
            for _, event in self._undurable
            if isinstance(event, e.BarrierReleased | e.BarrierBroke)
        }
        waited_for = set()
        for (key, number, worker_id), calls in self._waiting.items():
            if (key, number) in decided:
                continue  # its answer is on the way to the disk
            worker = self.state.membership.workers.get(worker_id)
            if worker is not None and worker.alive and any(call.accepted_as == worker.incarnation for call in calls):
                waited_for.add(key)
        return waited_for

    # --- durability

    def flush(self) -> None:
        self._journal.flush()
        for barrier in self.state.barriers.open.values():
            if barrier.members is not None and not barrier.arrivals.keys() <= barrier.members:
                raise Violation(f"somebody arrived at {barrier} who is not one of its members")

    def _on_durable(self, seq: int) -> None:
        self.durable = seq
        while self._undurable and self._undurable[0][0] <= seq:
            _, event = self._undurable.pop(0)
            self._history.on_durable(event)
            if isinstance(event, e.BarrierReleased | e.BarrierBroke):
                self._announce(event)
            elif isinstance(event, e.MembersLost):
                self._fence(event)
        self._release()

    def _announce(self, event: Outcome) -> None:
        key = BarrierKey(event.task_id, event.barrier_id, event.step)
        for worker_id in event.worker_ids:
            for call in self._waiting.pop((key, event.round, worker_id), ()):
                self._tell(call, event)

    def _fence(self, event: e.MembersLost) -> None:
        for place in [place for place in self._waiting if place[2] in event.worker_ids]:
            for call in self._waiting.pop(place):
                self.outbox.append((call, StrataError("fenced: out")))

    def _release(self) -> None:
        ready = [reply for reply in self._replies if reply.seq <= self.durable]
        if not ready:
            return
        self._replies = [reply for reply in self._replies if reply.seq > self.durable]
        for reply in ready:
            if reply.accepted is not None:
                self._history.on_accepted(*reply.accepted)
            self._tell(reply.call, reply.result)

    def _tell(self, call: Call, result: object) -> None:
        match result:
            case e.BarrierReleased() | e.BarrierBroke():
                assert isinstance(call.command, c.Arrive)
                arrival = call.command.arrival
                self._history.on_outcome_told(arrival.worker_id, arrival.request_id, result)
                key = BarrierKey(result.task_id, result.barrier_id, result.step)
                self.state.barriers.collected(key, (arrival.worker_id,))
            case JoinReply():
                self._history.on_told(call.task_id, result.generation)
            case Task():
                assert isinstance(call.command, c.SubmitTask)
                self._history.on_task_told(call.command.request_id, result.task_id)
            case _:
                pass
        self.outbox.append((call, result))

    def save_snapshot(self) -> None:
        snapshot = self._snapshots.begin(self.seq).go_on(math.inf)
        assert snapshot is not None
        self._journal.save_snapshot(snapshot)

    def check_replay(self) -> None:
        """The durable events, folded, are the state."""
        self.flush()
        replayed = ClusterState(CONFIG)
        now = read_clock(self._clock)
        for event in self._history.durable:
            replayed.evolve(e.decode_event(type(event).__name__, e.encode_event(event)), now)
        live, other = self.state.dump(), replayed.dump()
        for part in live:
            if live[part] != other[part]:
                raise Violation(f"replay differs in {part}: {live[part]} and {other[part]}")
