"""Who reads which samples of a dataset: the one answer for the page, for GetDataShard and for each worker's count.

A group reads in one of three ways. `lanes`: its loaders said which lanes they read. `queue`: shards are lent to whoever
is free. `dealt`: somebody asked for shards, and the sticky table was dealt. A group that is over reads nothing. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from strata.cluster.members import Group, Worker
from strata.cluster.model import Cluster
from strata.coordinator.state.datasets import Datasets, slot_name
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.queues import Queues
from strata.coordinator.state.readings import Readings
from strata.sharding.queue import ShardQueue
from strata.sharding.spans import NO_SPANS, ShardParts, cut
from strata.types.datasets import DatasetSpec, ShardAssignment

__all__ = ["Mode", "ShardReaders", "Shares"]

Mode = Literal["lanes", "queue", "dealt", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReaders:
    """Part i of the table: samples `starts[i]` up to `stops[i]` of shard `shards[i]` belong to `workers[readers[i]]`.

    In queue mode a part is the whole shard for everybody who took it, the last one first, and `committed[i]` of its
    samples count. `alive` says who of `workers` is there now; `num_samples` is each one's share of the whole dataset.
    """

    task_id: str
    mode: Mode
    generation: int
    workers: tuple[str, ...]
    ranks: tuple[int, ...]
    alive: tuple[bool, ...]
    shards: NDArray[np.int64]
    readers: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    committed: NDArray[np.int64]
    num_samples: tuple[int, ...]
    epoch: int | None = None  # of the queue; lanes and dealt shards are the same in every epoch


class Shares:
    """Looks at what the other parts of the state hold; has nothing of its own."""

    def __init__(
        self, cluster: Cluster, membership: Membership, datasets: Datasets, queues: Queues, readings: Readings
    ) -> None:
        self._cluster = cluster
        self._membership = membership
        self._datasets = datasets
        self._queues = queues
        self._readings = readings

    def mode(self, task_id: str, dataset_id: str) -> Mode:
        task = self._cluster.tasks.get(task_id)
        if task_id and (task is None or task.status.final):
            return ""
        if self._readings.of(task_id, dataset_id):
            return "lanes"
        if self._lending(task_id, dataset_id) is not None:
            return "queue"
        if dataset_id in self._datasets.attached(task_id) and (task_id or self._membership.num_alive("")):
            return "dealt"
        return ""

    def reading_group(self, dataset_id: str) -> str:
        """The newest group that reads a dataset; the plain workers' where none does."""
        queues = [task_id for task_id, name in self._queues.queues if name == dataset_id]
        dealt = [task_id for task_id in self._datasets.readers() if dataset_id in self._datasets.attached(task_id)]
        found = [*dealt, *queues, *self._readings.groups(dataset_id)]
        order = {task_id: number for number, task_id in enumerate(self._cluster.tasks)}
        reading = [task_id for task_id in found if task_id and self.mode(task_id, dataset_id)]
        return max(reading, key=lambda task_id: order.get(task_id, -1), default="")

    def table(self, task_id: str, dataset_id: str, first: int = 0, limit: int | None = None) -> ShardReaders:
        """Who reads shards `first` to `first + limit - 1`. Cost: the parts of these shards, not the dataset's."""
        spec = self._datasets.spec(dataset_id)
        last = spec.num_shards if limit is None else min(first + limit, spec.num_shards)
        mode = self.mode(task_id, dataset_id)
        group = self._cluster.world(task_id)
        match mode:
            case "lanes":
                return self._by_lanes(group, spec, first, last)
            case "queue":
                return self._by_queue(group, spec, first, last)
            case "dealt":
                return self._as_dealt(group, spec, first, last)
        return self._made(group, "")

    def num_assigned(self, worker: Worker) -> int:
        """How many shards a live worker reads, over all datasets of its group."""
        return sum(self._num_assigned(worker, name) for name in self.datasets_of(worker.task_id))

    def datasets_of(self, task_id: str) -> list[str]:
        """What a group reads, in whatever way."""
        queued = (name for group, name in self._queues.queues if group == task_id)
        return sorted({*self._datasets.attached(task_id), *self._readings.datasets_of(task_id), *queued})

    def _num_assigned(self, worker: Worker, dataset_id: str) -> int:
        match self.mode(worker.task_id, dataset_id):
            case "lanes":
                reader = self._readings.of(worker.task_id, dataset_id).get(worker.rank)
                return reader.num_shards if reader is not None else 0
            case "queue":
                return self._queues.queues[worker.task_id, dataset_id].takers.counts[worker.worker_id]
            case "dealt":
                return self._datasets.num_assigned(worker, dataset_id)
        return 0

    def assignments(self, worker: Worker, dataset_id: str, epoch: int, *, first: bool = False) -> list[ShardAssignment]:
        """What a worker reads, as ranges: dealt shards in the epoch's order, else by sample. `first`: only one."""
        mode = self.mode(worker.task_id, dataset_id)
        spec = self._datasets.spec(dataset_id)
        if mode == "lanes":
            reader = self._readings.of(worker.task_id, dataset_id).get(worker.rank)
            parts = cut(reader.spans, spec.shard_size) if reader is not None else _NO_PARTS
        elif mode == "queue" and (worker.task_id or self._num_assigned(worker, dataset_id)):
            parts = self._held(worker, spec)
        else:
            return self._datasets.shards_for(worker, dataset_id, epoch, first=first)
        number = 1 if first else len(parts.shards)
        pieces = zip(parts.shards[:number].tolist(), parts.starts.tolist(), parts.stops.tolist(), strict=False)
        files = self._datasets.files(spec)
        return [files.assignment(shard, start, stop, epoch) for shard, start, stop in pieces]

    # --- the three ways

    def _by_lanes(self, group: Group, spec: DatasetSpec, first: int, last: int) -> ShardReaders:
        readers = sorted(self._readings.of(group.task_id, spec.dataset_id).items())
        # Who holds the rank now, or held it last: that process reads these lanes, or its successor will.
        members = [(rank, self._membership.holder(group.task_id, rank) or reader.worker_id) for rank, reader in readers]
        parts = [cut(reader.spans, spec.shard_size, first, last) for _, reader in readers]
        return self._made(group, "lanes", members, parts, [reader.spans.num_samples for _, reader in readers])

    def _by_queue(self, group: Group, spec: DatasetSpec, first: int, last: int) -> ShardReaders:
        queue = self._queues.queues[group.task_id, spec.dataset_id]
        takers = queue.takers
        inside = (queue.shards >= first) & (queue.shards < last)
        shown, numbers = queue.shards[inside], takers.last[inside]
        latest = [shown[numbers == number] for number in range(len(takers.names))]
        before: dict[str, list[int]] = {}
        for place, names in takers.earlier.items():
            for name in names if inside[place] else ():
                before.setdefault(name, []).append(int(queue.shards[place]))
        members = [(self._rank_of(name), name) for name in (*takers.names, *before)]
        shards = [*latest, *(np.array(sorted(found), dtype=np.int64) for found in before.values())]
        return self._made(group, "queue", members, [_whole(spec, found) for found in shards], [], queue)

    def _as_dealt(self, group: Group, spec: DatasetSpec, first: int, last: int) -> ShardReaders:
        slots, owners = self._datasets.owners(group.task_id, spec.dataset_id)
        shards = np.bincount(owners[owners >= 0], minlength=len(slots)) * spec.shard_size
        if len(owners) and owners[-1] >= 0:  # the last shard may be shorter
            shards[owners[-1]] -= spec.num_shards * spec.shard_size - spec.total_samples
        members = [(rank, self._membership.holder(group.task_id, rank) or slot_name(rank)) for rank in slots]
        inside = owners[first:last]
        parts = [_whole(spec, first + np.flatnonzero(inside == number)) for number in range(len(slots))]
        return self._made(group, "dealt", members, parts, shards.tolist())

    def _made(
        self,
        group: Group,
        mode: Mode,
        members: Sequence[tuple[int, str]] = (),
        parts: Sequence[ShardParts] = (),
        num_samples: Sequence[int] = (),
        queue: ShardQueue | None = None,
    ) -> ShardReaders:
        numbers = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part.shards) for part in parts])
        joined = [np.concatenate([getattr(part, name) for part in (*parts, _NO_PARTS)]) for name in _COLUMNS]
        order = np.lexsort((joined[1], joined[0]))  # stable: who comes first in `members` comes first in a shard
        shards, starts, stops = (column[order] for column in joined)
        return ShardReaders(
            task_id=group.task_id,
            mode=mode,
            generation=group.generation,
            workers=tuple(name for _, name in members),
            ranks=tuple(rank for rank, _ in members),
            alive=tuple(self._is_alive(name) for _, name in members),
            shards=shards,
            readers=numbers[order],
            starts=starts,
            stops=stops,
            committed=queue.committed_of(shards) if queue is not None else shards[:0],
            num_samples=tuple(num_samples),
            epoch=queue.epoch if queue is not None else None,
        )

    # --- queue mode

    def _lending(self, task_id: str, dataset_id: str) -> ShardQueue | None:
        """The group's queue; of plain workers only while one of them takes part in it."""
        queue = self._queues.queues.get((task_id, dataset_id))
        if queue is None or task_id or any(self._is_alive(name) for name in queue.takers.names):
            return queue
        return None

    def _held(self, worker: Worker, spec: DatasetSpec) -> ShardParts:
        queue = self._queues.queues[worker.task_id, spec.dataset_id]
        held = sorted(int(queue.shards[lease.place]) for lease in queue.held_by(worker.worker_id))
        return _whole(spec, np.array(held, dtype=np.int64))

    def _is_alive(self, worker_id: str) -> bool:
        worker = self._membership.workers.get(worker_id)
        return worker is not None and worker.alive

    def _rank_of(self, worker_id: str) -> int:
        worker = self._membership.workers.get(worker_id)
        return worker.rank if worker is not None else -1


_COLUMNS = ("shards", "starts", "stops")
_NO_PARTS = cut(NO_SPANS, 1)


def _whole(spec: DatasetSpec, shards: NDArray[np.int64]) -> ShardParts:
    starts = shards.astype(np.int64) * spec.shard_size
    return ShardParts(shards.astype(np.int64), starts, np.minimum(starts + spec.shard_size, spec.total_samples))
