"""Barriers: sets of members that wait for each other. Pure; arrivals are volatile (clients repeat them after a
restart), outcomes are events, kept for late retries.

An arrival is a set insert, so a retry is harmless. A death breaks the barrier at once for everybody, naming the dead.
"""

from collections import OrderedDict
from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass, field, replace

from strata.cluster.events import BarrierBroke, BarrierReleased, MembersLost
from strata.cluster.members import Worker
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.now import Now
from strata.coordinator.state.outcomes import Outcome
from strata.coordinator.state.replies import BarrierReply
from strata.errors import InvalidArgument
from strata.types.barriers import BarrierArrival, BarrierKey, BarrierPolicy

__all__ = ["Barriers", "OpenBarrier"]

_KEEP_S = 600.0
_KEEP_ENTRIES = 200_000  # members summed over kept outcomes: bounds memory when steps are short and groups large
_NAMED = 8  # members that a sentence names; the error and the event list them all


@dataclass(slots=True, kw_only=True)
class OpenBarrier:
    """One round that waits. `members` is the explicit set (in it, empty ranks of a declared task), or None when only
    their number is known (`expected`)."""

    key: BarrierKey
    round: int
    members: set[str] | None
    expected: int
    asked: int
    policy: BarrierPolicy
    created_at: float
    created_mono: float
    deadline: float
    arrivals: dict[str, str] = field(default_factory=dict)  # worker → request id, in order of arrival
    superseded: list[str] = field(default_factory=list)  # requests that members came with before
    absent: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.expected if self.members is None else len(self.members)

    @property
    def complete(self) -> bool:
        if self.members is None:
            return len(self.arrivals) >= self.expected
        return self.members <= self.arrivals.keys()

    def has_place_for(self, worker_ids: KeysView[str]) -> bool:
        """Whether the round cannot be complete before the last of them is in it, and none of them is in it yet."""
        if not self.arrivals.keys().isdisjoint(worker_ids):
            return False
        if self.members is None:
            return len(self.arrivals) + len(worker_ids) <= self.expected
        return worker_ids <= self.members


@dataclass(slots=True, kw_only=True)
class _Kept:
    """An outcome and who has not fetched it: a plain client that has it and comes again means a new round.
    `answers` are the requests that are answered by it, however late they are repeated."""

    event: Outcome
    uncollected: set[str]
    answers: list[str]
    at: float


class Barriers:
    """All barriers of the cluster; `timeout_s` bounds those whose members name no deadline of their own."""

    def __init__(self, membership: Membership, timeout_s: float) -> None:
        self._membership = membership
        self._timeout_s = timeout_s
        self.open: dict[BarrierKey, OpenBarrier] = {}
        self._kept: OrderedDict[tuple[BarrierKey, int], _Kept] = OrderedDict()  # by key and round, oldest first
        self._newest: dict[BarrierKey, _Kept] = {}
        # Request → what it was told, by key: one table of 200,000 that come and go would make all wait for 10 ms
        # whenever it makes room.
        self._answered: dict[BarrierKey, dict[str, _Kept]] = {}
        self._entries = 0

    # --- arriving

    def arrive(self, arrival: BarrierArrival, now: Now) -> tuple[BarrierReply, Outcome | None]:
        """Inserts the arrival. Returns the reply, and the outcome that it brought: an event that must be evolved and
        journaled. One that was decided before is only repeated."""
        worker = self._membership.authorize(arrival, now)
        self._membership.pulses.touch(worker.worker_id, now)
        key = BarrierKey(worker.task_id, arrival.barrier_id, arrival.step)
        earlier = self._earlier_outcome(key, arrival)
        if earlier is not None:
            return BarrierReply(key, earlier.round, earlier), None
        return self._insert(self._round_of(key, arrival, now), {worker.worker_id: arrival.request_id}, now)

    def arrive_together(
        self, arrival: BarrierArrival, task_id: str, requests: Mapping[str, str], now: Now
    ) -> tuple[BarrierReply, Outcome | None] | None:
        """`arrive` for many of one group (worker → request id) who may all act and of whom `arrival` says what they
        have in common, for little more than one costs. None, and nothing is done, when they must come one by one."""
        key = BarrierKey(task_id, arrival.barrier_id, arrival.step)
        newest = self._newest.get(key)
        if newest is not None and not newest.uncollected.isdisjoint(requests):
            return None
        if newest is not None and any(_request(*pair) in self._answered[key] for pair in requests.items()):
            return None
        barrier = self._round_of(key, arrival, now)
        if not barrier.has_place_for(requests.keys()):
            return None
        self._membership.pulses.renew(requests, now)
        return self._insert(barrier, requests, now)

    def _round_of(self, key: BarrierKey, arrival: BarrierArrival, now: Now) -> OpenBarrier:
        barrier = self.open.get(key) or self._create(key, arrival, now)
        self._check_same(barrier, arrival)
        return barrier

    def _insert(
        self, barrier: OpenBarrier, requests: Mapping[str, str], now: Now
    ) -> tuple[BarrierReply, Outcome | None]:
        self.open[barrier.key] = barrier
        if barrier.members is not None:
            barrier.members.update(requests)
        for worker_id in barrier.arrivals.keys() & requests.keys():
            before = barrier.arrivals[worker_id]
            if before and before != requests[worker_id]:
                barrier.superseded.append(_request(worker_id, before))
        barrier.arrivals.update(requests)
        outcome = self._release(barrier, now) if barrier.complete else None
        return BarrierReply(barrier.key, barrier.round, outcome), outcome

    def _earlier_outcome(self, key: BarrierKey, arrival: BarrierArrival) -> Outcome | None:
        newest = self._newest.get(key)
        if newest is None:
            return None
        request, answered = _request(arrival.worker_id, arrival.request_id), self._answered[key]
        if arrival.request_id and request in answered:
            return answered[request].event
        if arrival.worker_id not in newest.uncollected:
            return None
        if arrival.request_id:
            if not _came_too_late(newest.event, arrival.worker_id):
                return None
            self._remember_answers(key, newest, [request])
        newest.uncollected.discard(arrival.worker_id)
        return newest.event

    def _remember_answers(self, key: BarrierKey, kept: _Kept, requests: list[str]) -> None:
        kept.answers += requests
        self._answered.setdefault(key, {}).update(dict.fromkeys(requests, kept))

    def _create(self, key: BarrierKey, arrival: BarrierArrival, now: Now) -> OpenBarrier:
        alive = self._membership.alive_in(key.task_id)
        members = {worker.worker_id for worker in alive}
        expected = arrival.expected or self._membership.world_size(key.task_id)
        if self._membership.groups[key.task_id].size == expected:
            held = {worker.rank for worker in alive}
            members.update(_vacant(rank) for rank in range(expected) if rank not in held)
        newest = self._newest.get(key)
        return OpenBarrier(
            key=key,
            round=newest.event.round + 1 if newest else 1,
            members=members if len(members) == expected else None,
            expected=expected,
            asked=expected,
            policy=arrival.policy,
            created_at=now.wall,
            created_mono=now.monotonic,
            deadline=now.monotonic + (arrival.timeout_s or self._timeout_s),
        )

    def _check_same(self, barrier: OpenBarrier, arrival: BarrierArrival) -> None:
        if arrival.expected and arrival.expected != barrier.asked:
            raise InvalidArgument(
                f"barrier {barrier.key.barrier_id!r} was opened for {barrier.asked} participants, "
                f"worker {arrival.worker_id} says {arrival.expected}",
                hint="All members of a barrier must name the same expected_participants.",
            )
        if arrival.policy is not barrier.policy:
            raise InvalidArgument(
                f"barrier {barrier.key.barrier_id!r} was opened with policy {barrier.policy}, "
                f"worker {arrival.worker_id} says {arrival.policy}"
            )

    def withdraw(self, key: BarrierKey, number: int, worker_id: str) -> None:
        """A waiter of this round gave up before there was an outcome: it no longer counts as arrived."""
        barrier = self.open.get(key)
        if barrier is None or barrier.round != number or worker_id not in barrier.arrivals:
            return
        del barrier.arrivals[worker_id]
        if not barrier.arrivals:
            del self.open[key]

    def collected(self, key: BarrierKey, worker_ids: Iterable[str]) -> None:
        """These members were sent their answer."""
        newest = self._newest.get(key)
        if newest is not None:
            newest.uncollected.difference_update(worker_ids)

    # --- deciding

    def plan_loss(self, lost: MembersLost, now: Now) -> list[Outcome]:
        """What the deaths mean for every barrier that waits in that group."""
        outcomes: list[Outcome] = []
        reasons = dict(zip(lost.worker_ids, lost.reasons, strict=True))
        for barrier in [item for item in self.open.values() if item.key.task_id == lost.task_id]:
            dead = self._involved(barrier, lost.worker_ids)
            if not dead:
                continue
            if barrier.policy is BarrierPolicy.FAIL:
                outcomes.append(self._break(barrier, dead, _deaths(dead, reasons, self._membership), now))
            elif barrier.policy is BarrierPolicy.SHRINK:
                left = _without(barrier, dead)
                if left.arrivals and left.complete:
                    outcomes.append(self._release(left, now))
        return outcomes

    def on_lost(self, lost: MembersLost) -> None:
        """Who still waits no longer counts on the dead. Told before the records change."""
        for barrier in [item for item in self.open.values() if item.key.task_id == lost.task_id]:
            dead = self._involved(barrier, lost.worker_ids)
            if barrier.policy is BarrierPolicy.WAIT:
                self._hold_places(barrier, dead, lost)
            elif barrier.policy is BarrierPolicy.SHRINK and dead:
                left = _without(barrier, dead)
                if left.arrivals:
                    self.open[barrier.key] = left
                else:
                    del self.open[barrier.key]

    def _hold_places(self, barrier: OpenBarrier, dead: list[str], lost: MembersLost) -> None:
        """The dead are waited for by their ids; who left will not come back, so its rank is."""
        for worker_id in dead:
            barrier.arrivals.pop(worker_id, None)
            if lost.left and barrier.members is not None:
                barrier.members.discard(worker_id)
                barrier.members.add(_vacant(self._membership.workers[worker_id].rank))

    def _involved(self, barrier: OpenBarrier, lost: Iterable[str]) -> list[str]:
        """The dead that this barrier cannot do without: its members, or, when only their number is known, those who
        had arrived, and all of them once too few are left to reach it."""
        if barrier.members is not None:
            return [worker_id for worker_id in lost if worker_id in barrier.members]
        arrived = [worker_id for worker_id in lost if worker_id in barrier.arrivals]
        left = self._membership.num_alive(barrier.key.task_id) - len(list(lost))
        return list(lost) if left < barrier.expected else arrived

    def on_rank_taken(self, worker: Worker, before: str | None) -> None:
        """A newcomer took a rank that was empty, or that `before` died in: who waited for it now waits for him."""
        for barrier in self.open.values():
            if barrier.key.task_id != worker.task_id or barrier.members is None:
                continue
            place = barrier.members & {_vacant(worker.rank), before}
            if place:
                barrier.members -= place
                barrier.members.add(worker.worker_id)

    def plan_expiry(self, now: Now) -> list[Outcome]:
        """Barriers whose deadline has passed, each naming who did not come and how long they have been silent."""
        late = [barrier for barrier in self.open.values() if barrier.deadline <= now.monotonic]
        return [self._expire(barrier, now) for barrier in late]

    def missing(self, barrier: OpenBarrier) -> list[str]:
        """Members, or else live workers of the group, that have not arrived."""
        wanted = barrier.members
        if wanted is None:
            wanted = {worker.worker_id for worker in self._membership.alive_in(barrier.key.task_id)}
        return sorted(wanted - barrier.arrivals.keys())

    def _expire(self, barrier: OpenBarrier, now: Now) -> BarrierBroke:
        missing = self.missing(barrier)
        waited = now.monotonic - barrier.created_mono
        who = _listed([self._describe(worker_id, now) for worker_id in missing[:_NAMED]], len(missing), ", ")
        who = who or "members that never registered"
        reason = f"{len(barrier.arrivals)} of {barrier.total} arrived in {waited:.1f} s; missing: {who}"
        return self._broke(barrier, missing, reason, now, expired=True)

    def _describe(self, worker_id: str, now: Now) -> str:
        worker = self._membership.workers.get(worker_id)
        if worker is None:
            return worker_id
        return f"{worker.label}, last heartbeat {self._membership.pulses.silent_s(worker_id, now):.1f} s ago"

    def _release(self, barrier: OpenBarrier, now: Now) -> BarrierReleased:
        return BarrierReleased(
            task_id=barrier.key.task_id,
            barrier_id=barrier.key.barrier_id,
            step=barrier.key.step,
            round=barrier.round,
            generation=self._membership.groups[barrier.key.task_id].generation,
            worker_ids=tuple(barrier.arrivals),
            request_ids=tuple(barrier.arrivals.values()),
            absent=tuple(barrier.absent),
            created_at=barrier.created_at,
            at=now.wall,
        )

    def _break(self, barrier: OpenBarrier, dead: list[str], reason: str, now: Now) -> BarrierBroke:
        return self._broke(barrier, dead, reason, now, expired=False)

    def _broke(self, barrier: OpenBarrier, missing: list[str], reason: str, now: Now, *, expired: bool) -> BarrierBroke:
        return BarrierBroke(
            task_id=barrier.key.task_id,
            barrier_id=barrier.key.barrier_id,
            step=barrier.key.step,
            round=barrier.round,
            generation=self._membership.groups[barrier.key.task_id].generation,
            worker_ids=tuple(barrier.arrivals),
            request_ids=tuple(barrier.arrivals.values()),
            missing=tuple(missing),
            reason=reason,
            expired=expired,
            total=barrier.total,
            created_at=barrier.created_at,
            at=now.wall,
        )

    # --- evolving

    def on_outcome(self, event: Outcome, now: Now) -> None:
        key = _key(event)
        opened = self.open.pop(key, None)
        waiting = set(event.worker_ids)
        if isinstance(event, BarrierBroke) and event.expired:
            waiting.update(event.missing)  # they may still come, and must hear that it is over
        kept = _Kept(event=event, uncollected=waiting, answers=[], at=now.monotonic)
        pairs = zip(event.worker_ids, event.request_ids, strict=True)
        requests = [_request(worker_id, request_id) for worker_id, request_id in pairs if request_id]
        self._remember_answers(key, kept, requests + (opened.superseded if opened is not None else []))
        self._kept[key, event.round] = self._newest[key] = kept
        self._entries += _size(event)
        while self._entries > _KEEP_ENTRIES:
            self._drop_oldest()

    def forget_old(self, now: Now) -> None:
        while self._kept and now.monotonic - next(iter(self._kept.values())).at >= _KEEP_S:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        (key, _), kept = self._kept.popitem(last=False)
        self._entries -= _size(kept.event)
        if self._newest.get(key) is kept:  # no round of this key is left
            del self._newest[key], self._answered[key]
            return
        answered = self._answered[key]
        for request in kept.answers:
            if answered.get(request) is kept:
                del answered[request]

    @property
    def kept(self) -> int:
        """How many ends are remembered: the newest ones."""
        return len(self._kept)


def _request(worker_id: str, request_id: str) -> str:
    """One string, not a tuple: hundreds of thousands are kept, and the garbage collector need not look at strings."""
    return f"{worker_id}\n{request_id}"


def _key(event: Outcome) -> BarrierKey:
    return BarrierKey(event.task_id, event.barrier_id, event.step)


def _without(barrier: OpenBarrier, dead: list[str]) -> OpenBarrier:
    """The barrier as those who are left have it."""
    return replace(
        barrier,
        arrivals={name: request for name, request in barrier.arrivals.items() if name not in dead},
        members=None if barrier.members is None else barrier.members - set(dead),
        expected=barrier.expected - len(dead),
        absent=[*barrier.absent, *dead],
    )


def _vacant(rank: int) -> str:
    """Stands for whoever will take this rank of a declared task. No worker can have such a name."""
    return f"rank {rank} (nobody yet)"


def _size(event: Outcome) -> int:
    return len(event.worker_ids) + 1


def _came_too_late(event: Outcome, worker_id: str) -> bool:
    """Whether the barrier expired while this member was missing."""
    return isinstance(event, BarrierBroke) and event.expired and worker_id not in event.worker_ids


def _deaths(dead: list[str], reasons: dict[str, str], membership: Membership) -> str:
    named = [f"{membership.workers[worker_id].label}: {reasons[worker_id]}" for worker_id in dead[:_NAMED]]
    return _listed(named, len(dead), "; ")


def _listed(named: list[str], total: int, separator: str) -> str:
    more = [f"and {total - len(named)} more"] if total > len(named) else []
    return separator.join([*named, *more])
