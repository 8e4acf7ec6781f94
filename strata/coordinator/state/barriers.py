"""Barriers: sets of members that wait for each other. Pure; arrivals are volatile (clients repeat them after a
restart), outcomes are events, kept for late retries.

An arrival is a set insert, so a retry is harmless. A death breaks the barrier at once for everybody, naming the dead.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from strata.cluster.events import BarrierBroke, BarrierReleased, MembersLost
from strata.cluster.members import Worker
from strata.coordinator.state.kept_outcomes import KeptOutcomes
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.now import Now
from strata.coordinator.state.outcomes import Outcome, key_of
from strata.coordinator.state.replies import BarrierReply
from strata.coordinator.state.roll import Roll
from strata.errors import InvalidArgument
from strata.types.barriers import BarrierArrival, BarrierKey, BarrierPolicy

__all__ = ["Barriers", "OpenBarrier"]

_NAMED = 8  # members that a sentence names; the error and the event list them all


@dataclass(slots=True, kw_only=True)
class OpenBarrier:
    """One round that waits. `members` is the explicit set (in it, empty ranks of a declared task), of whom some have
    arrived and nobody else has, or None when only their number is known (`expected`)."""

    key: BarrierKey
    round: int
    members: frozenset[str] | None
    expected: int
    asked: int
    policy: BarrierPolicy
    created_at: float
    created_mono: float
    deadline: float
    arrivals: dict[str, str] = field(default_factory=dict)  # worker → request id, in order of arrival
    superseded: list[tuple[str, str]] = field(default_factory=list)  # members, and requests they came with before
    absent: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.expected if self.members is None else len(self.members)

    @property
    def complete(self) -> bool:
        return len(self.arrivals) >= self.total

    def has_place_for(self, roll: Roll) -> bool:
        """Whether the round cannot be complete before the last of them is in it, and none of them is or was in it."""
        if not self.arrivals.keys().isdisjoint(roll.workers) or not roll.workers.isdisjoint(self.absent):
            return False
        if self.members is None:
            return len(self.arrivals) + len(roll) <= self.expected
        return roll.is_within(self.members)


class Barriers:
    """All barriers of the cluster; `timeout_s` bounds those whose members name no deadline of their own."""

    def __init__(self, membership: Membership, timeout_s: float) -> None:
        self._membership = membership
        self._timeout_s = timeout_s
        self.open: dict[BarrierKey, OpenBarrier] = {}
        self._kept = KeptOutcomes()

    # --- arriving

    def arrive(self, arrival: BarrierArrival, now: Now) -> tuple[BarrierReply, Outcome | None]:
        """Inserts the arrival. Returns the reply, and the outcome that it brought: an event that must be evolved and
        journaled. One that was decided before is only repeated."""
        worker = self._membership.authorize(arrival, now)
        self._membership.pulses.touch(worker.worker_id, now)
        key = BarrierKey(worker.task_id, arrival.barrier_id, arrival.step)
        earlier = self._kept.outcome_for(key, arrival)
        if earlier is not None:
            return BarrierReply(key, earlier.round, earlier), None
        barrier = self._round_of(key, arrival, now)
        self._make_place(barrier, worker.worker_id, arrival.request_id)
        barrier.arrivals[worker.worker_id] = arrival.request_id
        return self._look(barrier, now)

    def arrive_together(
        self, arrival: BarrierArrival, task_id: str, roll: Roll, now: Now
    ) -> tuple[BarrierReply, Outcome | None] | None:
        """`arrive` for many of one group who may all act and of whom `arrival` says what they have in common, their
        request included, for little more than one costs. That they live is known by the beats of the same streams.
        None, and nothing is done, when they must come one by one."""
        key = BarrierKey(task_id, arrival.barrier_id, arrival.step)
        if self._kept.knows_any(key, roll.workers, arrival.request_id):
            return None
        barrier = self._round_of(key, arrival, now)
        if not barrier.has_place_for(roll):
            return None
        if len(roll) == barrier.total:  # all at once, which most often they are
            outcome = self._released(barrier, roll.names, (arrival.request_id,), now)
            return BarrierReply(key, barrier.round, outcome), outcome
        barrier.arrivals.update(dict.fromkeys(roll.names, arrival.request_id))
        return self._look(barrier, now)

    def _round_of(self, key: BarrierKey, arrival: BarrierArrival, now: Now) -> OpenBarrier:
        barrier = self.open.get(key) or self._create(key, arrival, now)
        self._check_same(barrier, arrival)
        return barrier

    def _make_place(self, barrier: OpenBarrier, worker_id: str, request_id: str) -> None:
        if barrier.members is not None and worker_id not in barrier.members:
            barrier.members |= {worker_id}
        if worker_id in barrier.absent:  # it shrank, and grows again
            barrier.absent.remove(worker_id)
            barrier.expected += 1
        before = barrier.arrivals.get(worker_id)
        if before and before != request_id:
            barrier.superseded.append((worker_id, before))

    def _look(self, barrier: OpenBarrier, now: Now) -> tuple[BarrierReply, Outcome | None]:
        """Somebody came: is it complete?"""
        self.open[barrier.key] = barrier
        outcome = self._release(barrier, now) if barrier.complete else None
        return BarrierReply(barrier.key, barrier.round, outcome), outcome

    def _create(self, key: BarrierKey, arrival: BarrierArrival, now: Now) -> OpenBarrier:
        members = self._membership.names_in(key.task_id)
        expected = self._expected(key, arrival.expected)
        if self._membership.groups[key.task_id].size == expected and not self._membership.is_full(key.task_id):
            held = {worker.rank for worker in self._membership.alive_in(key.task_id)}
            members = members | {_vacant(rank) for rank in range(expected) if rank not in held}
        return OpenBarrier(
            key=key,
            round=self._kept.newest_round(key) + 1,
            members=members if len(members) == expected else None,
            expected=expected,
            asked=expected,
            policy=arrival.policy,
            created_at=now.wall,
            created_mono=now.monotonic,
            deadline=now.monotonic + (arrival.timeout_s or self._timeout_s),
        )

    def _expected(self, key: BarrierKey, asked: int) -> int:
        return asked or self._membership.world_size(key.task_id)

    def num_missing(self, key: BarrierKey, asked: int) -> int:
        """How many have to come yet, where members who ask for so many (0: for all) are about to."""
        barrier = self.open.get(key)
        return barrier.total - len(barrier.arrivals) if barrier is not None else self._expected(key, asked)

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
        barrier.superseded = [item for item in barrier.superseded if item[0] != worker_id]
        if not barrier.arrivals:
            del self.open[key]

    def collected(self, key: BarrierKey, worker_ids: Iterable[str]) -> None:
        """These members were sent their answer."""
        self._kept.collected(key, worker_ids)

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
                barrier.members = barrier.members - {worker_id} | {_vacant(self._membership.workers[worker_id].rank)}

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
                barrier.members = barrier.members - place | {worker.worker_id}

    def plan_expiry(self, now: Now) -> list[Outcome]:
        """Barriers whose deadline has passed, each naming who did not come and how long they have been silent."""
        late = [barrier for barrier in self.open.values() if barrier.deadline <= now.monotonic]
        return [self._expire(barrier, now) for barrier in late]

    def missing(self, barrier: OpenBarrier) -> list[str]:
        """Members, or else live workers of the group, that have not arrived, by rank; empty ranks last."""
        wanted = barrier.members
        if wanted is None:
            wanted = self._membership.names_in(barrier.key.task_id)
        return sorted(wanted - barrier.arrivals.keys(), key=self._by_rank)

    def _by_rank(self, worker_id: str) -> tuple[float, int, str]:
        worker = self._membership.workers.get(worker_id)
        return (worker.rank if worker is not None else math.inf, len(worker_id), worker_id)

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
        return self._released(barrier, tuple(barrier.arrivals), _request_ids(barrier), now)

    def _released(
        self, barrier: OpenBarrier, worker_ids: tuple[str, ...], request_ids: tuple[str, ...], now: Now
    ) -> BarrierReleased:
        return BarrierReleased(
            task_id=barrier.key.task_id,
            barrier_id=barrier.key.barrier_id,
            step=barrier.key.step,
            round=barrier.round,
            generation=self._membership.groups[barrier.key.task_id].generation,
            worker_ids=worker_ids,
            request_ids=request_ids,
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
            request_ids=_request_ids(barrier),
            missing=tuple(missing),
            reason=reason,
            expired=expired,
            total=barrier.total,
            created_at=barrier.created_at,
            at=now.wall,
        )

    # --- evolving

    def on_outcome(self, event: Outcome, now: Now) -> None:
        opened = self.open.pop(key_of(event), None)
        self._kept.add(event, opened.superseded if opened is not None else [], now)

    def forget_old(self, now: Now) -> None:
        self._kept.forget_old(now)

    @property
    def kept(self) -> int:
        """How many ends are remembered: the newest ones."""
        return len(self._kept)


def _without(barrier: OpenBarrier, dead: list[str]) -> OpenBarrier:
    """The barrier as those who are left have it."""
    return replace(
        barrier,
        arrivals={name: request for name, request in barrier.arrivals.items() if name not in dead},
        members=None if barrier.members is None else barrier.members - set(dead),
        expected=barrier.expected - len(dead),
        absent=[*barrier.absent, *dead],
    )


def _request_ids(barrier: OpenBarrier) -> tuple[str, ...]:
    """As an event has them: one for all where they came with the same."""
    request_ids = tuple(barrier.arrivals.values())
    is_one = bool(request_ids) and request_ids.count(request_ids[0]) == len(request_ids)
    return request_ids[:1] if is_one else request_ids


def _vacant(rank: int) -> str:
    """Stands for whoever will take this rank of a declared task. No worker can have such a name."""
    return f"rank {rank} (nobody yet)"


def _deaths(dead: list[str], reasons: dict[str, str], membership: Membership) -> str:
    named = [f"{membership.workers[worker_id].label}: {reasons[worker_id]}" for worker_id in dead[:_NAMED]]
    return _listed(named, len(dead), "; ")


def _listed(named: list[str], total: int, separator: str) -> str:
    more = [f"and {total - len(named)} more"] if total > len(named) else []
    return separator.join([*named, *more])
