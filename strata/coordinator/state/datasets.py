"""Datasets and who reads which shard: one table per group and dataset, dealt to ranks, not to processes, so that a
replacement moves nothing. Pure; a table changes only by an event, and the same events give the same tables.
"""

from bisect import bisect_left
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.cluster.events import DatasetAttached, DatasetRegistered, ShardsRebalanced
from strata.cluster.members import Worker
from strata.cluster.model import Cluster
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.now import Now
from strata.errors import Conflict, InvalidArgument, UnknownDataset
from strata.sharding import ShardManager
from strata.sharding.dataset import FileRanges
from strata.types.datasets import DatasetSpec, ShardAssignment
from strata.types.plain import shared

__all__ = ["MAX_NEW_SHARDS", "Datasets", "slot_name"]

# The first dealing of this many takes 0.04 s of the coordinator's one loop, of a million 0.23 s. Older journals may
# hold datasets with more.
MAX_NEW_SHARDS = 250_000


def slot_name(rank: int) -> str:
    """The name under which a rank owns shards."""
    return f"rank-{rank}"


class Datasets:
    """All datasets, by the cluster's records, and the tables of every group that reads them."""

    def __init__(self, cluster: Cluster, membership: Membership) -> None:
        self._cluster = cluster
        self._membership = membership
        self._managers: dict[str, ShardManager] = {}
        self._dealt: dict[str, tuple[int, ...]] = {}  # group → the ranks its tables are dealt to
        self._settled: dict[str, int] = {}  # group → the generation at which that was last found to be right
        self._files: dict[str, FileRanges] = {}
        self.timer: Callable[[], AbstractContextManager[None]] = nullcontext  # around every dealing

    # --- reading

    def spec(self, dataset_id: str) -> DatasetSpec:
        found = self._cluster.datasets.get(dataset_id)
        if found is None:
            raise UnknownDataset(f"no dataset {dataset_id!r} is registered")
        return found.spec

    def attached(self, task_id: str) -> tuple[str, ...]:
        manager = self._managers.get(task_id)
        return manager.datasets if manager else ()

    def digest(self, task_id: str, dataset_id: str) -> str:
        """The digest of the group's dealt table; empty when none was dealt."""
        return self._managers[task_id].digest(dataset_id) if dataset_id in self.attached(task_id) else ""

    def shards_for(self, worker: Worker, dataset_id: str, epoch: int, *, first: bool = False) -> list[ShardAssignment]:
        """The worker's dealt shards in the order of the epoch, or only the first. The group must have been dealt
        (`plan_rebalance`) before."""
        manager = self._managers[worker.task_id]
        shards = manager.shard_ids(dataset_id, slot_name(worker.rank), epoch)[: 1 if first else None]
        return [manager.shard(dataset_id, shard, epoch) for shard in shards.tolist()]

    def files(self, spec: DatasetSpec) -> FileRanges:
        """The files of a dataset by sample. Remembered, since a dataset may have many."""
        if spec.dataset_id not in self._files:
            self._files[spec.dataset_id] = FileRanges(spec)
        return self._files[spec.dataset_id]

    def owners(self, task_id: str, dataset_id: str) -> tuple[list[int], NDArray[np.int32]]:
        """The dealt table: ranks, and by shard an index into them; -1 is nobody."""
        manager = self._managers[task_id]
        ranks = {slot_name(rank): rank for rank in self._dealt.get(task_id, ())}
        return [ranks[slot] for slot in manager.workers], manager.assignment(dataset_id)

    def num_assigned(self, worker: Worker, dataset_id: str) -> int:
        """How many shards of a dataset were dealt to a worker."""
        ranks = self._dealt.get(worker.task_id, ())
        place = bisect_left(ranks, worker.rank)  # they are in order, and may be thousands
        if place == len(ranks) or ranks[place] != worker.rank:
            return 0
        return self._managers[worker.task_id].num_assigned(dataset_id, slot_name(worker.rank))

    # --- deciding

    def plan_register(self, spec: DatasetSpec, now: Now) -> DatasetRegistered | None:
        """None when it is registered already with the same numbers."""
        found = self._cluster.datasets.get(spec.dataset_id)
        known = found.spec if found is not None else None
        if known == spec:
            return None
        if spec.num_shards > MAX_NEW_SHARDS:
            raise InvalidArgument(
                f"dataset {spec.dataset_id!r} would have {spec.num_shards} shards, allowed are at most "
                f"{MAX_NEW_SHARDS}",
                hint=f"Use a shard_size of at least {-(-spec.total_samples // MAX_NEW_SHARDS)}.",
            )
        if known is not None:
            changed = [name for name in DatasetSpec.__slots__ if getattr(known, name) != getattr(spec, name)]
            was, says = ({name: getattr(item, name) for name in changed} for item in (known, spec))
            raise Conflict(
                f"dataset {spec.dataset_id!r} is registered with {was}, this call says {says}",
                hint="Register changed data under a new dataset_id.",
            )
        return DatasetRegistered(
            **{**shared(DatasetRegistered, spec), "metadata": dict(spec.metadata)},
            file_paths=tuple(file.path for file in spec.files),
            file_samples=tuple(file.num_samples for file in spec.files),
            at=now.wall,
        )

    def plan_attach(self, task_id: str, dataset_id: str) -> DatasetAttached | None:
        self.spec(dataset_id)
        if dataset_id in self.attached(task_id):
            return None
        return DatasetAttached(task_id=task_id, dataset_id=dataset_id)

    def plan_rebalance(self, task_id: str) -> ShardsRebalanced | None:
        """None while the tables are dealt to just the ranks that should have them; `settle` remembers that."""
        manager = self._managers.get(task_id)
        if manager is None:
            return None
        generation = self._membership.groups[task_id].generation
        if self._settled.get(task_id) == generation:
            return None
        ranks = self._membership.ranks(task_id)
        stale = any(manager.needs_rebalance(dataset_id) for dataset_id in manager.datasets)
        if not ranks or (self._dealt.get(task_id) == ranks and not stale):
            return None
        return ShardsRebalanced(task_id=task_id, generation=generation, ranks=ranks)

    def settle(self, task_id: str) -> None:
        """Notes that the tables are right until the group's members change."""
        if task_id in self._managers:
            self._settled[task_id] = self._membership.groups[task_id].generation

    def readers(self) -> list[str]:
        """The groups that read at least one dataset."""
        return list(self._managers)

    # --- evolving

    def on_attached(self, event: DatasetAttached) -> None:
        manager = self._managers.setdefault(event.task_id, ShardManager())
        manager.register_dataset(self.spec(event.dataset_id))
        self._settled.pop(event.task_id, None)

    def on_rebalanced(self, event: ShardsRebalanced) -> None:
        manager = self._managers[event.task_id]
        before = set(self._dealt.get(event.task_id, ()))
        for rank in before - set(event.ranks):
            manager.remove_worker(slot_name(rank))
        for rank in event.ranks:
            manager.register_worker(slot_name(rank))
        with self.timer():
            for dataset_id in manager.datasets:
                manager.rebalance(dataset_id)
        self._dealt[event.task_id] = event.ranks
        alive = self._membership.alive_in(event.task_id)
        self._membership.pulses.note_change(worker.worker_id for worker in alive)  # their shards are among their vitals
        self._settled[event.task_id] = event.generation

    # --- snapshots

    def dump(self) -> list[dict[str, Any]]:
        return [
            {"task_id": task_id, "dealt": list(self._dealt.get(task_id, ())), "manager": manager.dump()}
            for task_id, manager in self._managers.items()
        ]

    def load(self, dumped: list[dict[str, Any]]) -> None:
        for item in dumped:
            self._managers[item["task_id"]] = ShardManager.load(item["manager"])
            self._dealt[item["task_id"]] = tuple(item["dealt"])
