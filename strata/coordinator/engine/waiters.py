"""Members that wait at barriers, and whom to tell. No task and no future per member: a release of a thousand members is
a thousand calls, no more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strata.coordinator.state.outcomes import Outcome
from strata.errors import Fenced
from strata.types.barriers import BarrierKey

__all__ = ["Tell", "Waiter", "Waiters"]

Tell = Callable[["Waiter", Outcome | BaseException], None]


@dataclass(slots=True, eq=False)
class Waiter:
    """A member at one round of a barrier. `on_outcome` hears the outcome, or why there is none for it, once."""

    key: BarrierKey
    round: int
    worker_id: str
    request_id: str
    on_outcome: Tell
    beside: "Waiter | None" = None  # an earlier call of the same member that still waits

    def tell(self, outcome: Outcome | BaseException) -> None:
        self.on_outcome(self, outcome)


class Waiters:
    """By round, too: the answer to one that is decided but not yet durable must not go to an arrival at the next."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[BarrierKey, int], dict[str, Waiter]] = {}

    def add(self, waiter: Waiter) -> None:
        """A retry of the same member may wait beside its first call."""
        place = (waiter.key, waiter.round)
        members = self._rounds.get(place)
        if members is None:
            members = self._rounds[place] = {}
        waiter.beside = members.get(waiter.worker_id)
        members[waiter.worker_id] = waiter

    def release(self, event: Outcome) -> None:
        """Tells everybody whom the outcome is for. Who is not in it stays, to be fenced."""
        place = (BarrierKey(event.task_id, event.barrier_id, event.step), event.round)
        members = self._rounds.get(place)
        if members is None:
            return
        told = [members.pop(worker_id, None) for worker_id in event.worker_ids]
        if not members:
            del self._rounds[place]
        for waiter in told:
            while waiter is not None:
                waiter.on_outcome(waiter, event)
                waiter = waiter.beside

    def fence(self, reasons: Mapping[str, str]) -> None:
        """Calls that the dead still hold open must end, whatever becomes of the barrier they wait at."""
        for place in list(self._rounds):
            members = self._rounds[place]
            for worker_id in members.keys() & reasons.keys():
                waiter: Waiter | None = members.pop(worker_id)
                while waiter is not None:
                    waiter.tell(Fenced(f"fenced: worker {worker_id} is out: {reasons[worker_id]}"))
                    waiter = waiter.beside
            if not members:
                del self._rounds[place]

    def remove(self, waiter: Waiter) -> bool:
        """True when it was the last one that waited for its member."""
        place = (waiter.key, waiter.round)
        members = self._rounds.get(place, {})
        waiting: list[Waiter] = []
        item = members.get(waiter.worker_id)
        while item is not None:
            waiting.append(item)
            item = item.beside
        if waiter not in waiting:
            return False
        waiting.remove(waiter)
        if waiting:
            members[waiter.worker_id] = _chained(waiting)
            return False
        del members[waiter.worker_id]
        if not members:
            del self._rounds[place]
        return True


def _chained(waiters: list[Waiter]) -> Waiter:
    """The first of them, each with the next one beside it."""
    for waiter, beside in zip(waiters, [*waiters[1:], None], strict=True):
        waiter.beside = beside
    return waiters[0]
