"""Who belongs to the cluster: workers in groups (one per task, and one of plain workers), their ranks, leases and
generations. Pure: time is an argument, decisions are events, refusals are typed and say why.

A group's generation rises with every change of its members. Its fence is the generation of the last change that made
the world before it invalid (a loss, a departure, a replacement): a call that carries an older one is refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any, NamedTuple

from strata.cluster.events import MembersLost, WorkerJoined
from strata.coordinator.state.now import Now
from strata.errors import Conflict, Fenced, InvalidArgument, UnknownWorker
from strata.types.barriers import BarrierArrival
from strata.types.workers import MemberState, WorkerSpec

__all__ = ["Caller", "Group", "Membership", "Worker", "trusting"]

_SUSPECT_AFTER = 0.6  # of the lease: agents are suspect at 3 s of 5 s, plain workers at 18 s of 30 s
_KEEP_GONE = 1_000  # records of workers that are gone, for the dashboard


class Caller(NamedTuple):
    """Who makes a mutating call. Plain clients know only their id; the SDK sends all three."""

    worker_id: str
    incarnation: str = ""
    generation: int = 0


@dataclass(slots=True, kw_only=True)
class Worker:
    """One worker's record. The last four fields are volatile: never journaled, fresh after a restart."""

    worker_id: str
    task_id: str
    incarnation: str
    rank: int
    hostname: str
    port: int
    gpu_count: int
    memory_bytes: int
    agent_id: str
    metadata: dict[str, str]
    joined_at: float
    state: MemberState = MemberState.READY
    reason: str = ""
    ended_at: float | None = None
    seen_at: float = 0.0  # monotonic, of the last heartbeat
    seen_wall: float | None = None
    report: object | None = None  # the newest heartbeat as the transport gave it; opaque here
    changed: bool = True  # since vitals were last taken

    @property
    def alive(self) -> bool:
        return self.state.alive

    @property
    def is_started_rank(self) -> bool:
        """Whether an agent has started it for its task: such a process is named by `incarnation_of`."""
        return bool(self.task_id) and self.incarnation.startswith(f"{self.task_id}.")

    @property
    def label(self) -> str:
        return f"{self.worker_id} (rank {self.rank})"


@dataclass(slots=True, kw_only=True)
class Group:
    """The workers of one task, or the plain ones. `size` is a task's declared worker count; None = elastic."""

    task_id: str
    size: int | None = None
    generation: int = 0
    fence: int = 0
    num_alive: int = 0
    slots: dict[int, str] = field(default_factory=dict)  # rank → who holds or last held it
    full_below: int = 0  # every rank below it is held by somebody alive: where the search for a free one begins


class Membership:
    """All groups. `lease_s` is how long a worker lives without a heartbeat."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.workers: dict[str, Worker] = {}
        self.groups: dict[str, Group] = {"": Group(task_id="")}

    # --- reading

    def group_of(self, worker: Worker) -> Group:
        return self.groups[worker.task_id]

    def alive_in(self, task_id: str) -> list[Worker]:
        """The group's live workers by rank."""
        group = self.groups.get(task_id)
        if group is None:
            return []
        found = (self.workers[worker_id] for worker_id in group.slots.values())
        return sorted((worker for worker in found if worker.alive), key=lambda worker: worker.rank)

    def world_size(self, task_id: str) -> int:
        """A task's declared size; else how many are alive."""
        group = self.groups[task_id]
        return group.size if group.size is not None else group.num_alive

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
            raise Fenced(
                f"fenced: worker {worker.worker_id} was declared {worker.state} {_ago(now, worker)}: {worker.reason}",
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
        group = self.groups.get(spec.task_id) or Group(task_id=spec.task_id)
        rank = self._plan_rank(group, spec)
        generation = group.generation + 1
        return WorkerJoined(
            worker_id=spec.worker_id,
            task_id=spec.task_id,
            incarnation=spec.incarnation or f"plain-{generation}",
            rank=rank,
            generation=generation,
            hostname=spec.hostname,
            port=spec.port,
            gpu_count=spec.gpu_count,
            memory_bytes=spec.memory_bytes,
            agent_id=spec.agent_id,
            metadata=dict(spec.metadata),
            at=now.wall,
        )

    def _plan_rank(self, group: Group, spec: WorkerSpec) -> int:
        """Its own old rank, else the rank it asks for, else the lowest that nobody alive holds."""
        if spec.rank is not None:
            self._check_asked_rank(group, spec.rank, spec.worker_id)
            return spec.rank
        known = self.workers.get(spec.worker_id)
        if known is not None and group.slots.get(known.rank) == spec.worker_id:
            return known.rank
        rank = next(rank for rank in count(group.full_below) if not self._held(group, rank))
        if group.size is not None and rank >= group.size:
            raise Conflict(f"task {group.task_id} has {group.size} workers already", hint="Raise its worker_count.")
        return rank

    def _check_asked_rank(self, group: Group, rank: int, worker_id: str) -> None:
        if group.size is not None and rank >= group.size:
            raise InvalidArgument(f"rank is {rank}, task {group.task_id} has ranks 0 to {group.size - 1}")
        holder = group.slots.get(rank)
        if holder != worker_id and self._held(group, rank):
            raise Conflict(f"rank {rank} of {_group_name(group.task_id)} is held by worker {holder}, which is alive")

    def _held(self, group: Group, rank: int) -> bool:
        """Whether somebody alive has this rank."""
        holder = group.slots.get(rank)
        return holder is not None and self.workers[holder].alive

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

    def expired(self, now: Now) -> dict[str, str]:
        """Workers whose lease ran out, each with the reason. Marks those that are late as suspect."""
        gone: dict[str, str] = {}
        for worker in self.workers.values():
            if not worker.alive:
                continue
            silent = now.monotonic - worker.seen_at
            if silent > self.lease_s:
                gone[worker.worker_id] = f"no heartbeat for {silent:.1f} s (timeout {self.lease_s:g} s)"
            elif silent > self.lease_s * _SUSPECT_AFTER and worker.state is MemberState.READY:
                worker.state = MemberState.SUSPECT
                worker.changed = True
        return gone

    # --- volatile

    def beat(self, worker: Worker, report: object, now: Now) -> None:
        """A heartbeat arrived: the lease starts anew."""
        worker.seen_at = now.monotonic
        worker.seen_wall = now.wall
        worker.report = report
        worker.changed = True
        if worker.state is MemberState.SUSPECT:
            worker.state = MemberState.READY

    def suspect(self, worker_id: str, incarnation: str) -> None:
        """Its stream broke: worth a look, not yet a death."""
        worker = self.workers.get(worker_id)
        if worker is not None and worker.incarnation == incarnation and worker.state is MemberState.READY:
            worker.state = MemberState.SUSPECT
            worker.changed = True

    def renew_all(self, now: Now) -> None:
        """A fresh full term for everyone: after a restart or a stall of our own, silence proves nothing."""
        for worker in self.workers.values():
            if worker.alive:
                worker.seen_at = now.monotonic

    def take_changed(self) -> Iterator[Worker]:
        """Workers whose vitals changed since this was last asked."""
        for worker in self.workers.values():
            if worker.changed:
                worker.changed = False
                yield worker

    # --- evolving

    def declare_group(self, task_id: str, size: int) -> None:
        self.groups.setdefault(task_id, Group(task_id=task_id, size=size))

    def on_joined(self, event: WorkerJoined, now: Now) -> None:
        group = self.groups.setdefault(event.task_id, Group(task_id=event.task_id))
        group.generation = event.generation
        before = self.workers.get(event.worker_id)
        if before is not None:  # an id that comes back in another group must not be counted in both
            slots = self.groups[before.task_id].slots
            if slots.get(before.rank) == event.worker_id:
                del slots[before.rank]
        group.slots[event.rank] = event.worker_id
        group.num_alive += 1
        if event.rank == group.full_below:
            group.full_below += 1
        self.workers[event.worker_id] = Worker(
            worker_id=event.worker_id,
            task_id=event.task_id,
            incarnation=event.incarnation,
            rank=event.rank,
            hostname=event.hostname,
            port=event.port,
            gpu_count=event.gpu_count,
            memory_bytes=event.memory_bytes,
            agent_id=event.agent_id,
            metadata=event.metadata,
            joined_at=event.at,
            seen_at=now.monotonic,
        )

    def on_lost(self, event: MembersLost) -> None:
        group = self.groups[event.task_id]
        group.generation = event.generation
        group.fence = event.generation
        group.num_alive -= len(event.worker_ids)
        for worker_id, reason in zip(event.worker_ids, event.reasons, strict=True):
            worker = self.workers[worker_id]
            worker.state = MemberState.LEFT if event.left else MemberState.LOST
            worker.reason = reason
            worker.ended_at = event.at
            worker.changed = True
            group.full_below = min(group.full_below, worker.rank)
            if event.left and group.size is None:
                del group.slots[worker.rank]
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        gone = [worker for worker in self.workers.values() if not worker.alive]
        if len(gone) <= _KEEP_GONE:
            return
        gone.sort(key=lambda worker: worker.ended_at or 0.0)
        for worker in gone[: len(gone) - _KEEP_GONE]:
            del self.workers[worker.worker_id]
            slots = self.groups[worker.task_id].slots
            if slots.get(worker.rank) == worker.worker_id:
                del slots[worker.rank]  # nobody is waiting for it any more: the next newcomer may have the rank

    # --- snapshots

    def dump(self) -> dict[str, Any]:
        volatile = ("seen_at", "seen_wall", "report", "changed")
        return {
            "workers": [
                {**_without(_flat(worker), volatile), "state": trusting(worker.state)}
                for worker in self.workers.values()
            ],
            "groups": [
                {**asdict(group), "slots": [[rank, holder] for rank, holder in group.slots.items()]}
                for group in self.groups.values()
            ],
        }

    def load(self, dumped: dict[str, Any], now: Now) -> None:
        for values in dumped["workers"]:
            worker = Worker(**{**values, "state": MemberState(values["state"]), "seen_at": now.monotonic})
            self.workers[worker.worker_id] = worker
        for values in dumped["groups"]:
            slots = {int(rank): str(holder) for rank, holder in values["slots"]}
            self.groups[values["task_id"]] = Group(**{**values, "slots": slots})


def trusting(state: MemberState) -> MemberState:
    """As it is stored: a suspicion is never journaled, so no snapshot may hold one either."""
    return MemberState.READY if state is MemberState.SUSPECT else state


def _flat(worker: Worker) -> dict[str, Any]:
    return {name: getattr(worker, name) for name in Worker.__slots__}


def _without(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _group_name(task_id: str) -> str:
    return f"task {task_id}" if task_id else "the group of plain workers"


def _ago(now: Now, worker: Worker) -> str:
    return f"{max(0.0, now.wall - (worker.ended_at or now.wall)):.1f} s ago"
