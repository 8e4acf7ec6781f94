"""Members that wait at barriers, and whom to tell. No task and no future per member: those that arrived together are
told together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from strata.coordinator.state.outcomes import Outcome, key_of
from strata.coordinator.state.roll import Roll
from strata.errors import Fenced
from strata.types.barriers import BarrierKey

__all__ = ["Tell", "Waiter", "Waiters"]

Tell = Callable[["Waiter", Sequence[str], Outcome | BaseException], None]


@dataclass(slots=True, eq=False)
class Waiter:
    """Members that came to one round of a barrier in one call, with one request. `tell` hears the outcome once for each
    of them, or why there is none: which members, in the order of their places, and what. `gone` were told, or gave
    up."""

    key: BarrierKey
    round: int
    roll: Roll
    request_id: str
    tell: Tell
    gone: frozenset[str] = frozenset()

    def has(self, worker_id: str) -> bool:
        return worker_id in self.roll.workers and worker_id not in self.gone

    def take(self, members: AbstractSet[str]) -> Sequence[str]:
        """Those of these who wait here: from now on they do not."""
        if not self.gone and (members is self.roll.workers or self.roll.workers <= members):  # most often thousands
            self.gone = self.roll.workers
            return self.roll.names
        taken = [name for name in self.roll.names if name in members and name not in self.gone]
        self.gone |= set(taken)
        return taken

    @property
    def is_over(self) -> bool:
        return len(self.gone) == len(self.roll)


class _Round:
    """Who waits for the end of one round: crowds, and who came alone, by name."""

    def __init__(self) -> None:
        self.crowds: list[Waiter] = []
        self.alone: dict[str, tuple[Waiter, ...]] = {}

    def add(self, waiter: Waiter) -> None:
        if len(waiter.roll) > 1:
            self.crowds.append(waiter)
            return
        (worker_id,) = waiter.roll.names
        self.alone[worker_id] = (*self.alone.get(worker_id, ()), waiter)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self.crowds or any(waiter in self.alone.get(worker_id, ()) for worker_id in waiter.roll.names)

    def all(self) -> list[Waiter]:
        return [*self.crowds, *(waiter for waiters in self.alone.values() for waiter in waiters)]

    def at(self, names: AbstractSet[str]) -> Iterator[Waiter]:
        """In which some of these may wait."""
        yield from self.crowds
        for worker_id in self.alone.keys() & names:
            yield from self.alone[worker_id]

    def forget(self, waiter: Waiter) -> None:
        """Nobody waits in it any more."""
        if len(waiter.roll) > 1:
            self.crowds.remove(waiter)
            return
        (worker_id,) = waiter.roll.names
        others = tuple(item for item in self.alone[worker_id] if item is not waiter)
        if others:
            self.alone[worker_id] = others
        else:
            del self.alone[worker_id]


class Waiters:
    """By round, too: the answer to one that is decided but not yet durable must not go to an arrival at the next."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[BarrierKey, int], _Round] = {}

    def add(self, waiter: Waiter) -> None:
        """A retry of the same member may wait beside its first call."""
        self._rounds.setdefault((waiter.key, waiter.round), _Round()).add(waiter)

    def release(self, event: Outcome) -> None:
        """Tells everybody whom the outcome is for, of crowds the last first. Who is not in it stays, to be fenced."""
        place = (key_of(event), event.round)
        waiting = self._rounds.get(place)
        if waiting is None:
            return
        waiters = waiting.all()
        roll = waiters[0].roll
        members = roll.workers if roll.names is event.worker_ids else frozenset(event.worker_ids)
        for waiter in reversed(waiters):
            worker_ids = self._take(place, waiter, members)
            if worker_ids:
                waiter.tell(waiter, worker_ids, event)

    def fence(self, reasons: Mapping[str, str]) -> None:
        """Calls that the dead still hold open must end, whatever becomes of the barrier they wait at."""
        for place, waiting in list(self._rounds.items()):
            for waiter in list(waiting.at(reasons.keys())):
                for worker_id in self._take(place, waiter, waiter.roll.workers & reasons.keys()):
                    why = Fenced(f"fenced: worker {worker_id} is out: {reasons[worker_id]}")
                    waiter.tell(waiter, (worker_id,), why)

    def remove(self, waiter: Waiter, worker_id: str) -> bool:
        """True when it was the last one that waited for this member."""
        place, names = (waiter.key, waiter.round), {worker_id}
        waiting = self._rounds.get(place)
        if waiting is None or waiter not in waiting or not self._take(place, waiter, names):
            return False
        return not any(other.has(worker_id) for other in waiting.at(names))

    def _take(self, place: tuple[BarrierKey, int], waiter: Waiter, members: AbstractSet[str]) -> Sequence[str]:
        taken = waiter.take(members)
        if taken and waiter.is_over:
            waiting = self._rounds[place]
            waiting.forget(waiter)
            if not waiting.crowds and not waiting.alone:
                del self._rounds[place]
        return taken
