"""How barriers ended, kept for members that ask late or again. Pure, bounded by time and by size."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from strata.cluster.events import BarrierBroke
from strata.coordinator.state.now import Now
from strata.coordinator.state.outcomes import Outcome, key_of, requests_of
from strata.types.barriers import BarrierArrival, BarrierKey

__all__ = ["KeptOutcomes"]

_KEEP_S = 600.0
_KEEP_ENTRIES = 200_000  # members summed over kept outcomes: bounds memory when steps are short and groups large
_KEEP_LISTS = 64  # of those who fetched it: several thousand are in a few of them


@dataclass(slots=True, kw_only=True, eq=False)
class _Kept:
    """An outcome. `superseded` are members, and requests that they had come with before. `answers` are the requests
    that are answered by it, however late they are repeated, with who came with each; filled when somebody asks."""

    event: Outcome
    superseded: list[tuple[str, str]]
    at: float
    answers: dict[str, set[str]] = field(default_factory=dict)
    _uncollected: set[str] | None = None
    _collected: list[Iterable[str]] = field(default_factory=list)  # and not yet taken from the set

    def collected(self, worker_ids: Iterable[str]) -> None:
        """These have fetched it."""
        self._collected.append(worker_ids)
        if len(self._collected) > _KEEP_LISTS:
            self.uncollected()

    def uncollected(self) -> set[str]:
        """Who has not fetched it: a plain client that has it and comes again means a new round. Made when somebody
        asks, which at most barriers nobody does."""
        if self._uncollected is None:
            self._uncollected = set(self.event.worker_ids)
            if isinstance(self.event, BarrierBroke) and self.event.expired:
                self._uncollected.update(self.event.missing)  # they may still come, and must hear that it is over
        self._uncollected.difference_update(*self._collected)
        self._collected.clear()
        return self._uncollected

    def fill_answers(self) -> None:
        requests, pairs = self.event.request_ids, self.superseded
        if len(requests) == 1:  # of thousands
            self.answers[requests[0]] = set(self.event.worker_ids)
        else:
            pairs = [*requests_of(self.event).items(), *pairs]
        for worker_id, request_id in pairs:
            self.answers.setdefault(request_id, set()).add(worker_id)
        self.answers.pop("", None)


class KeptOutcomes:
    """The newest ones of the cluster."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[BarrierKey, int], _Kept] = OrderedDict()  # by key and round, oldest first
        self._newest: dict[BarrierKey, _Kept] = {}
        # Request → where it may have been answered, by key: one table of 200,000 that come and go would make all wait
        # for 10 ms whenever it makes room. Nobody asks again about most barriers, so what is in none of these yet is
        # put there when somebody does.
        self._answered: dict[BarrierKey, dict[str, list[_Kept]]] = {}
        self._unindexed: dict[BarrierKey, dict[_Kept, None]] = {}
        self._entries = 0

    def __len__(self) -> int:
        return len(self._kept)

    def newest_round(self, key: BarrierKey) -> int:
        """0 when none is known."""
        newest = self._newest.get(key)
        return newest.event.round if newest is not None else 0

    def knows_any(self, key: BarrierKey, workers: frozenset[str], request_id: str) -> bool:
        """Whether one of these, who came with this request, may have to be told an end that is known."""
        newest = self._newest.get(key)
        if newest is None:
            return False
        if not newest.uncollected().isdisjoint(workers):
            return True
        return any(
            not kept.answers[request_id].isdisjoint(workers) for kept in self._answers_at(key).get(request_id, ())
        )

    def outcome_for(self, key: BarrierKey, arrival: BarrierArrival) -> Outcome | None:
        """The end that this arrival is to be told; None when it means a round to come."""
        newest = self._newest.get(key)
        if newest is None:
            return None
        worker_id, request_id, answered = arrival.worker_id, arrival.request_id, self._answers_at(key)
        for kept in answered.get(request_id, ()):
            if worker_id in kept.answers[request_id]:
                return kept.event
        if worker_id not in newest.uncollected():
            return None
        if request_id:
            if not _came_too_late(newest.event, worker_id):
                return None
            if request_id not in newest.answers:
                newest.answers[request_id] = set()
                answered.setdefault(request_id, []).append(newest)
            newest.answers[request_id].add(worker_id)
        newest.collected((worker_id,))
        return newest.event

    def collected(self, key: BarrierKey, worker_ids: Iterable[str]) -> None:
        """These members were sent their answer."""
        newest = self._newest.get(key)
        if newest is not None:
            newest.collected(worker_ids)

    def add(self, event: Outcome, superseded: list[tuple[str, str]], now: Now) -> None:
        """`superseded` are members, and requests that they had come with before."""
        key = key_of(event)
        kept = _Kept(event=event, superseded=superseded, at=now.monotonic)
        self._kept[key, event.round] = self._newest[key] = kept
        self._unindexed.setdefault(key, {})[kept] = None
        self._entries += _size(event)
        while self._entries > _KEEP_ENTRIES:
            self._drop_oldest()

    def forget_old(self, now: Now) -> None:
        while self._kept and now.monotonic - next(iter(self._kept.values())).at >= _KEEP_S:
            self._drop_oldest()

    def _answers_at(self, key: BarrierKey) -> dict[str, list[_Kept]]:
        answered = self._answered.setdefault(key, {})
        for kept in self._unindexed.pop(key, ()):
            kept.fill_answers()
            for request_id in kept.answers:
                answered.setdefault(request_id, []).append(kept)
        return answered

    def _drop_oldest(self) -> None:
        (key, _), kept = self._kept.popitem(last=False)
        self._entries -= _size(kept.event)
        if self._newest.get(key) is kept:  # no round of this key is left
            del self._newest[key]
            self._answered.pop(key, None)
            self._unindexed.pop(key, None)
            return
        unindexed = self._unindexed.get(key, {})
        if kept in unindexed:
            del unindexed[kept]
            return
        answered = self._answered[key]
        for request_id in kept.answers:
            answered[request_id].remove(kept)
            if not answered[request_id]:
                del answered[request_id]


def _size(event: Outcome) -> int:
    return len(event.worker_ids) + 1


def _came_too_late(event: Outcome, worker_id: str) -> bool:
    """Whether the barrier expired while this member was missing."""
    return isinstance(event, BarrierBroke) and event.expired and worker_id not in event.worker_ids
