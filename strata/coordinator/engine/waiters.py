"""Members that wait at barriers, and whom to tell. No task and no future per member: those of one host that arrived
together are told together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strata.coordinator.state.outcomes import Outcome, key_of
from strata.errors import Fenced
from strata.types.barriers import BarrierKey

__all__ = ["Tell", "Waiter", "Waiters"]

Tell = Callable[["Waiter", Sequence[str], Outcome | BaseException], None]


@dataclass(slots=True, eq=False)
class Waiter:
    """Members that came to one round of a barrier in one call. `tell` hears the outcome once for each of them, or why
    there is none: which members, in the order of their arrival, and what."""

    key: BarrierKey
    round: int
    requests: Mapping[str, str]  # worker → request id
    tell: Tell


class Waiters:
    """By round, too: the answer to one that is decided but not yet durable must not go to an arrival at the next."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[BarrierKey, int], dict[str, tuple[Waiter, ...]]] = {}

    def add(self, waiter: Waiter) -> None:
        """A retry of the same member may wait beside its first call."""
        place = (waiter.key, waiter.round)
        members = self._rounds.get(place)
        if members is None:
            members = self._rounds[place] = {}
        added: dict[str, tuple[Waiter, ...]] = dict.fromkeys(waiter.requests, (waiter,))
        for worker_id in members.keys() & added.keys():
            added[worker_id] = (*members[worker_id], waiter)
        members.update(added)

    def release(self, event: Outcome) -> None:
        """Tells everybody whom the outcome is for. Who is not in it stays, to be fenced."""
        place = (key_of(event), event.round)
        members = self._rounds.get(place)
        if members is None:
            return
        told: dict[Waiter, list[str]] = {}
        together: tuple[Waiter, ...] = ()  # most often the same for one member after the other
        names: list[str] = []
        for worker_id in event.worker_ids:
            waiting = members.pop(worker_id, ())
            if waiting and waiting is together:
                names.append(worker_id)
                continue
            for waiter in waiting:
                names = told.setdefault(waiter, [])
                names.append(worker_id)
            together = waiting if len(waiting) == 1 else ()
        if not members:
            del self._rounds[place]
        for waiter, worker_ids in told.items():
            waiter.tell(waiter, worker_ids, event)

    def fence(self, reasons: Mapping[str, str]) -> None:
        """Calls that the dead still hold open must end, whatever becomes of the barrier they wait at."""
        for place, members in list(self._rounds.items()):
            for worker_id in members.keys() & reasons.keys():
                for waiter in members.pop(worker_id):
                    why = Fenced(f"fenced: worker {worker_id} is out: {reasons[worker_id]}")
                    waiter.tell(waiter, (worker_id,), why)
            if not members:
                del self._rounds[place]

    def remove(self, waiter: Waiter, worker_id: str) -> bool:
        """True when it was the last one that waited for this member."""
        place = (waiter.key, waiter.round)
        members = self._rounds.get(place, {})
        waiting = members.pop(worker_id, ())
        others = tuple(item for item in waiting if item is not waiter)
        if others:
            members[worker_id] = others
        elif waiting and not members:
            del self._rounds[place]
        return bool(waiting) and not others
