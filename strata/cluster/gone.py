"""Workers that are lost or have left, the longest gone first: which records are dropped when there are too many."""

import heapq
from collections.abc import Iterable, Iterator

from strata.cluster.members import Worker

__all__ = ["Gone"]


class Gone:
    """A loss among ten thousand workers costs as much as one among ten. The order is by the records alone, so that
    whoever has followed all events and whoever came later drop the same."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._oldest: list[tuple[float, str]] = []  # a heap, in which those who came back are left until it is rebuilt

    def load(self, workers: Iterable[Worker]) -> None:
        self._since = {worker.worker_id: worker.ended_at or 0.0 for worker in workers if not worker.alive}
        self._rebuild()

    def add(self, worker_id: str, ended_at: float) -> None:
        self._since[worker_id] = ended_at
        heapq.heappush(self._oldest, (ended_at, worker_id))
        if len(self._oldest) > 2 * len(self._since) + 1_000:
            self._rebuild()

    def discard(self, worker_id: str) -> None:
        """It is back."""
        self._since.pop(worker_id, None)

    def take_beyond(self, limit: int) -> Iterator[str]:
        """Yields the longest gone until so many are left, and forgets them."""
        while len(self._since) > limit and self._oldest:
            ended_at, worker_id = heapq.heappop(self._oldest)
            if self._since.get(worker_id) == ended_at:
                del self._since[worker_id]
                yield worker_id

    def _rebuild(self) -> None:
        self._oldest = [(ended_at, worker_id) for worker_id, ended_at in self._since.items()]
        heapq.heapify(self._oldest)
