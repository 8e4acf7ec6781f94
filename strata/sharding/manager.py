"""ShardManager: which worker reads which shard of which dataset. Synchronous, deterministic, no clock, no I/O.

Ownership follows the mutating calls alone (register, remove, rebalance) and never the epoch, so replaying them
gives the same tables. A lookup rebalances first where membership changed since the last table; who replays a journal
records that as a `rebalance` of its own (see `needs_rebalance`).
"""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from strata.errors import Conflict, InvalidArgument, UnknownDataset, UnknownWorker
from strata.sharding.dataset import Policy, ShardedDataset
from strata.sharding.table import Table, canonical
from strata.types.datasets import DatasetSpec, ShardAssignment
from strata.types.names import check_name

__all__ = ["ShardManager"]

_STATE_VERSION = 1


class ShardManager:
    """Workers that join before the first lookup share the shards in hash order, whatever order they came in. Later
    changes move as few shards as possible and keep every worker within one shard of every other.

    As long as nobody was registered, a lookup registers its worker: the first one gets everything, the next ones share.
    After the first `register_worker`, only registered workers may look up.
    """

    def __init__(self, policy: Policy = "sticky") -> None:
        if policy not in get_args(Policy):
            raise InvalidArgument(
                f"shard policy {policy!r} is unknown", hint=f"Allowed: {', '.join(get_args(Policy))}."
            )
        self._policy: Policy = policy
        self._members: set[str] = set()
        self._ordered: tuple[str, ...] | None = ()
        self._datasets: dict[str, ShardedDataset] = {}
        self._open = True  # nobody was registered by name: whoever asks joins

    @property
    def workers(self) -> tuple[str, ...]:
        """The worker ids, in the order that the indices of `assignment` refer to."""
        if self._ordered is None:
            self._ordered = canonical(self._members)
        return self._ordered

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sorted(self._datasets))

    def register_worker(self, worker_id: str) -> None:
        """Joins a worker. A repeat is harmless."""
        self._open = False
        self._join(worker_id)

    def _join(self, worker_id: str) -> None:
        if check_name("worker", worker_id) not in self._members:
            self._members.add(worker_id)
            self._ordered = None

    def remove_worker(self, worker_id: str) -> None:
        """Forgets a worker; its shards move at the next rebalance."""
        if worker_id in self._members:
            self._members.remove(worker_id)
            self._ordered = None

    def register_dataset_params(
        self, dataset_id: str, total_samples: int, shard_size: int, shuffle: bool = True, seed: int = 0
    ) -> int:
        """Registers a dataset by its numbers alone; returns how many shards it has."""
        return self.register_dataset(
            DatasetSpec(
                dataset_id=dataset_id, total_samples=total_samples, shard_size=shard_size, shuffle=shuffle, seed=seed
            )
        )

    def register_dataset(self, spec: DatasetSpec) -> int:
        """Registers a dataset; returns how many shards it has. The same again is harmless."""
        known = self._datasets.setdefault(spec.dataset_id, ShardedDataset(spec, self._policy))
        if known.spec != spec:
            raise Conflict(
                f"dataset {spec.dataset_id!r} is registered with other parameters",
                hint="Register the new data under another id.",
            )
        return known.num_shards

    def needs_rebalance(self, dataset_id: str) -> bool:
        """Whether membership changed since this dataset's table was made. O(1) when it did not."""
        table = self._dataset(dataset_id).table
        return table is None or (table.slots is not self.workers and table.slots != self.workers)

    def rebalance(self, dataset_id: str) -> int:
        """Brings the table up to the present membership; returns its revision, which grows with every change."""
        dataset = self._dataset(dataset_id)
        if self.needs_rebalance(dataset_id):
            dataset.apply(dataset.plan(self.workers))
        return dataset.revision

    def get_shard_for_worker(self, dataset_id: str, worker_id: str, epoch: int = 0) -> list[ShardAssignment]:
        """A worker's shards, in the order it should read them in this epoch."""
        dataset = self._dataset(dataset_id)
        return [dataset.assignment(shard, epoch) for shard in self.shard_ids(dataset_id, worker_id, epoch).tolist()]

    def shard_ids(self, dataset_id: str, worker_id: str, epoch: int = 0) -> NDArray[np.int64]:
        """As get_shard_for_worker, as an array of numbers. Cost: the worker's shards, not the dataset's."""
        if epoch < 0:
            raise InvalidArgument(f"epoch cannot be negative: {epoch}")
        dataset = self._dataset(dataset_id)
        if self._open:
            self._join(worker_id)
        self._check_member(worker_id)
        self.rebalance(dataset_id)
        return dataset.shards_of(worker_id, epoch)

    def shard(self, dataset_id: str, shard_id: int, epoch: int = 0) -> ShardAssignment:
        """The range and the files of one shard, whoever reads it."""
        dataset = self._dataset(dataset_id)
        if not 0 <= shard_id < dataset.num_shards:
            raise InvalidArgument(f"shard {shard_id} of dataset {dataset_id!r} is outside 0…{dataset.num_shards - 1}")
        return dataset.assignment(shard_id, epoch)

    def assignment(self, dataset_id: str) -> NDArray[np.int32]:
        """Owner of every shard as an index into `workers`; -1 everywhere while there are none."""
        return self._dataset(dataset_id).owners(self._table(dataset_id))

    def num_assigned(self, dataset_id: str, worker_id: str) -> int:
        """How many shards a worker has."""
        self._check_member(worker_id)
        return len(self._table(dataset_id).units_of(worker_id))

    def digest(self, dataset_id: str) -> str:
        """Names the present ownership: whoever computed the same table has the same digest."""
        return self._table(dataset_id).digest

    def table_bytes(self, dataset_id: str) -> int:
        """What the ownership of a dataset costs in memory."""
        return self._dataset(dataset_id).nbytes

    def dump(self) -> dict[str, Any]:
        """The whole state as JSON. Small while nobody left or joined; else at most a few bytes per shard."""
        return {
            "version": _STATE_VERSION,
            "policy": self._policy,
            "workers": sorted(self._members),
            "open": self._open,
            "datasets": [self._datasets[name].dump() for name in self.datasets],
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "ShardManager":
        """Reads what `dump` gave. Earlier releases had a mapping of workers to names that were the same."""
        if state.get("version") != _STATE_VERSION:
            raise InvalidArgument(f"shard state of version {state.get('version')!r} cannot be read by this release")
        manager = cls(state["policy"])
        for worker_id in state["workers"]:
            manager._join(worker_id)
        manager._open = bool(state.get("open", not state["workers"]))
        for entry in state["datasets"]:
            dataset = ShardedDataset.load(entry)
            manager._datasets[dataset.spec.dataset_id] = dataset
        return manager

    def _check_member(self, worker_id: str) -> None:
        if worker_id not in self._members:
            raise UnknownWorker(
                f"worker {worker_id!r} is not registered", hint="Call register_worker: this manager knows its workers."
            )

    def _table(self, dataset_id: str) -> Table:
        """The table for the present membership."""
        self.rebalance(dataset_id)
        table = self._dataset(dataset_id).table
        assert table is not None
        return table

    def _dataset(self, dataset_id: str) -> ShardedDataset:
        dataset = self._datasets.get(dataset_id)
        if dataset is None:
            raise UnknownDataset(f"dataset {dataset_id!r} is not registered")
        return dataset
