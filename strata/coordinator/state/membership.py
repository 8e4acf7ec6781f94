"""Who belongs to the cluster: workers in groups (one per task, and one of plain workers), their ranks, leases and
generations. Pure: time is an argument, decisions are events, refusals are typed and say why.

A group's generation rises with every change of its members. Its fence is the generation of the last change that made
the world before it invalid (a loss, a departure, a replacement): a call that carries an older one is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from strata.cluster.events import MembersLost, WorkerJoined
from strata.cluster.members import Group, Worker
from strata.cluster.model import Cluster
from strata.coordinator.state.now import Now
from strata.coordinator.state.pulses import Pulses
from strata.errors import Conflict, Fenced, InvalidArgument, UnknownWorker
from strata.types.barriers import BarrierArrival
from strata.types.plain import shared
from strata.types.workers import WorkerSpec

__all__ = ["Caller", "Membership"]


class Caller(NamedTuple):
    """Who makes a mutating call. Plain clients know only their id; the SDK sends all three."""

    worker_id: str
    incarnation: str = ""
    generation: int = 0


@dataclass(slots=True, kw_only=True)
class _Seats:
    """The ranks of one group."""

    holders: dict[int, str] = field(default_factory=dict)  # rank → who holds or last held it
    num_alive: int = 0
    full_below: int = 0  # live workers hold all ranks below this one; the search for a free rank begins here
    alive: list[Worker] = field(default_factory=list)  # by rank, as long as `group` is the group's record
    names: frozenset[str] = frozenset()  # of them
    group: Group | None = None


class Membership:
    """All groups, by the cluster's records. `lease_s` is how long a worker lives without a heartbeat."""

    def __init__(self, cluster: Cluster, lease_s: float) -> None:
        self._cluster = cluster
        self._seats: dict[str, _Seats] = {"": _Seats()}
        self._hosts: dict[str, dict[str, None]] = {}  # agent → its live workers
        self.pulses = Pulses(lease_s)

    # --- reading

    @property
    def workers(self) -> Mapping[str, Worker]:
        return self._cluster.workers

    @property
    def groups(self) -> Mapping[str, Group]:
        return self._cluster.groups

    def group_of(self, worker: Worker) -> Group:
        return self.groups[worker.task_id]

    def alive_in(self, task_id: str) -> list[Worker]:
        """The group's live workers by rank."""
        return list(self._present(task_id).alive)

    def names_in(self, task_id: str) -> frozenset[str]:
        """The group's live workers by name."""
        return self._present(task_id).names

    def is_full(self, task_id: str) -> bool:
        """Whether live workers hold the ranks of a declared task, all of them and no others."""
        size, alive = self.groups[task_id].size, self._present(task_id).alive
        return size == len(alive) and (not alive or alive[-1].rank == size - 1)

    def _present(self, task_id: str) -> _Seats:
        """The group's seats, with its live workers: looked for once per record of the group."""
        group, seats = self.groups.get(task_id), self._seats_of(task_id)
        if group is None or seats.group is not group:
            found = (self.workers.get(worker_id) for worker_id in seats.holders.values())
            alive = (worker for worker in found if worker is not None and worker.alive)
            seats.alive, seats.group = sorted(alive, key=attrgetter("rank")), group
            seats.names = frozenset(worker.worker_id for worker in seats.alive)
        return seats

    def asked_in(self, task_id: str) -> list[int]:
        """The ranks of a group to which somebody has sent SIGTERM."""
        asked = (self.workers[worker_id] for worker_id in self.pulses.asked)
        return sorted(worker.rank for worker in asked if worker.task_id == task_id)

    def any_leaves(self, task_id: str) -> bool:
        """Whether a rank has said that it goes because it was told to, and not because its work is done."""
        return any(self.workers[worker_id].task_id == task_id for worker_id in self.pulses.leaving)

    @property
    def hosts(self) -> Mapping[str, Mapping[str, None]]:
        """The live workers of each agent that has some."""
        return self._hosts

    def holder(self, task_id: str, rank: int) -> str | None:
        """Who holds a rank now, or held it last."""
        return self._seats_of(task_id).holders.get(rank)

    def num_alive(self, task_id: str) -> int:
        return self._seats_of(task_id).num_alive

    def world_size(self, task_id: str) -> int:
        """A task's declared size; else how many are alive."""
        size = self.groups[task_id].size
        return size if size is not None else self.num_alive(task_id)

    def ranks(self, task_id: str) -> tuple[int, ...]:
        """All ranks of a task, dead or alive, since a replacement takes a dead one's place; else those alive."""
        size = self.groups[task_id].size
        return tuple(range(size)) if size is not None else tuple(worker.rank for worker in self.alive_in(task_id))

    def _seats_of(self, task_id: str) -> _Seats:
        return self._seats.get(task_id) or _Seats()

    def authorize(self, caller: Caller | BarrierArrival, now: Now) -> Worker:
        """The caller's record if it may still act, else why not. A rank that an agent started must be named by its
        incarnation, too: a worker of the original proto that says its id is another process."""
        worker = self.look_up(caller.worker_id, now)
        group = self.groups[worker.task_id]
        must_match = caller.incarnation or worker.is_started_rank
        if must_match and caller.incarnation != worker.incarnation:
            raise Fenced(
                f"fenced: incarnation {caller.incarnation or 'missing'} of worker {worker.worker_id} was replaced by "
                f"{worker.incarnation}"
            )
        if caller.generation and caller.generation < group.fence:
            raise Fenced(f"fenced: generation {caller.generation}, current {group.generation}")
        return worker

    def look_up(self, worker_id: str, now: Now) -> Worker:
        """The record of a worker that is alive."""
        worker = self.workers.get(worker_id)
        if worker is None:
            raise UnknownWorker(f"worker {worker_id!r} is not registered")
        if not worker.alive:
            ago_s = max(0.0, now.wall - (worker.ended_at or now.wall))
            raise Fenced(
                f"fenced: worker {worker_id} was declared {worker.state} {ago_s:.1f} s ago: {worker.reason}",
                hint="Register again to come back; what this process did since then was not accepted.",
            )
        return worker

    # --- deciding

    def plan_takeover(self, spec: WorkerSpec, now: Now) -> list[MembersLost]:
        """The loss of the process that held this id until now: a crashed worker may come back before it was missed."""
        known = self.workers.get(spec.worker_id)
        if known is None or not known.alive:
            return []
        if known.task_id != spec.task_id:
            raise Conflict(
                f"worker id {spec.worker_id!r} is alive in {_group_name(known.task_id)}, "
                f"it cannot join {_group_name(spec.task_id)}",
                hint="Give every worker an id of its own.",
            )
        if spec.incarnation and spec.incarnation == known.incarnation:
            return []
        if spec.rank is not None:
            self._check_asked_rank(self.groups[spec.task_id], spec.rank, spec.worker_id)
        return self.plan_loss({spec.worker_id: "registered again as a new process"}, now)

    def plan_join(self, spec: WorkerSpec, now: Now) -> WorkerJoined | None:
        """The event that lets a worker in; None when this very process is in already. A live worker of that id in
        the same group must be declared lost first (`plan_takeover`)."""
        known = self.workers.get(spec.worker_id)
        if known is not None and known.alive:
            return None
        group = self._cluster.world(spec.task_id)
        rank = self._plan_rank(group, spec)
        generation = group.generation + 1
        given = {
            "incarnation": spec.incarnation or f"plain-{generation}",
            "rank": rank,
            "metadata": dict(spec.metadata),
        }
        return WorkerJoined(**{**shared(WorkerJoined, spec), **given}, generation=generation, at=now.wall)

    def _plan_rank(self, group: Group, spec: WorkerSpec) -> int:
        """Its own old rank, else the rank it asks for, else the lowest that nobody alive holds."""
        if spec.rank is not None:
            self._check_asked_rank(group, spec.rank, spec.worker_id)
            return spec.rank
        known = self.workers.get(spec.worker_id)
        if known is not None and self.holder(group.task_id, known.rank) == spec.worker_id:
            return known.rank
        first = self._seats_of(group.task_id).full_below
        rank = next(rank for rank in count(first) if not self._held(group, rank))
        if group.size is not None and rank >= group.size:
            raise Conflict(f"task {group.task_id} has {group.size} workers already", hint="Raise its worker_count.")
        return rank

    def _check_asked_rank(self, group: Group, rank: int, worker_id: str) -> None:
        if group.size is not None and rank >= group.size:
            raise InvalidArgument(f"rank is {rank}, task {group.task_id} has ranks 0 to {group.size - 1}")
        holder = self.holder(group.task_id, rank)
        if holder != worker_id and self._held(group, rank):
            raise Conflict(f"rank {rank} of {_group_name(group.task_id)} is held by worker {holder}, which is alive")

    def _held(self, group: Group, rank: int) -> bool:
        """Whether somebody alive has this rank."""
        worker = self.workers.get(self.holder(group.task_id, rank) or "")
        return worker is not None and worker.alive

    def plan_loss(self, gone: dict[str, str], now: Now, *, left: bool = False) -> list[MembersLost]:
        """One event per group for the workers that are gone (id → reason); those that are gone already are left out."""
        by_group: dict[str, list[Worker]] = {}
        for worker_id in gone:
            worker = self.workers.get(worker_id)
            if worker is not None and worker.alive:
                by_group.setdefault(worker.task_id, []).append(worker)
        return [
            MembersLost(
                task_id=task_id,
                generation=self.groups[task_id].generation + 1,
                worker_ids=tuple(worker.worker_id for worker in workers),
                reasons=tuple(gone[worker.worker_id] for worker in workers),
                left=left,
                at=now.wall,
            )
            for task_id, workers in by_group.items()
        ]

    def alive(self) -> list[str]:
        return [worker_id for workers in self._hosts.values() for worker_id in workers]

    def suspect(self, worker_id: str, incarnation: str) -> None:
        """Marks a worker whose stream broke as suspect."""
        worker = self.workers.get(worker_id)
        if worker is not None and worker.incarnation == incarnation and worker.alive:
            self.pulses.suspect(worker_id)

    def note_cut(self, worker_id: str, incarnation: str, now: Now) -> None:
        """The connection has ended by which a worker registered: with it, or in idleness."""
        worker = self.workers.get(worker_id)
        if worker is not None and worker.incarnation == incarnation and worker.alive:
            self.pulses.cut[worker_id] = now.monotonic

    # --- evolving: both are told before the cluster's records change

    def on_joined(self, event: WorkerJoined, now: Now) -> None:
        before = self.workers.get(event.worker_id)
        if before is not None:  # an id that comes back in another group must not be counted in both
            holders = self._seats[before.task_id].holders
            if holders.get(before.rank) == event.worker_id:
                del holders[before.rank]
        seats = self._seats.setdefault(event.task_id, _Seats())
        seats.holders[event.rank] = event.worker_id
        seats.num_alive += 1
        if event.rank == seats.full_below:
            seats.full_below += 1
        self._hosts.setdefault(event.agent_id, {})[event.worker_id] = None
        self.pulses.start(event.worker_id, now)

    def on_lost(self, event: MembersLost) -> None:
        seats = self._seats[event.task_id]
        seats.num_alive -= len(event.worker_ids)
        elastic = self.groups[event.task_id].size is None
        for worker_id in event.worker_ids:
            worker = self.workers[worker_id]
            seats.full_below = min(seats.full_below, worker.rank)
            if event.left and elastic:
                del seats.holders[worker.rank]
            neighbours = self._hosts.get(worker.agent_id, {})
            neighbours.pop(worker_id, None)
            if not neighbours:
                self._hosts.pop(worker.agent_id, None)
        self.pulses.end(event.worker_ids)

    # --- snapshots

    def dump(self) -> list[dict[str, Any]]:
        return [{"task_id": task_id, "holders": list(seats.holders.items())} for task_id, seats in self._seats.items()]

    def load(self, dumped: Iterable[Mapping[str, Any]], now: Now) -> None:
        """Fills the seats. The records must be loaded before."""
        for item in dumped:
            self._seats[item["task_id"]] = _Seats(holders={int(rank): holder for rank, holder in item["holders"]})
        for worker in self.workers.values():
            self.pulses.start(worker.worker_id, now)
            if worker.alive:
                self._seats[worker.task_id].num_alive += 1
                self._hosts.setdefault(worker.agent_id, {})[worker.worker_id] = None


def _group_name(task_id: str) -> str:
    return f"task {task_id}" if task_id else "the group of plain workers"
