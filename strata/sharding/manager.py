"""ShardManager: which worker reads which shard of which dataset. Synchronous, deterministic, no clock, no I/O.

Ownership follows the mutating calls alone (register, remove, replace, rebalance) and never the epoch, so replaying them
gives the same tables. A lookup rebalances first where membership changed since the last table; who replays a journal
records that as a `rebalance` of its own (see `needs_rebalance`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from strata.errors import Conflict, InvalidArgument, UnknownDataset, UnknownWorker
from strata.sharding.dataset import Policy, ShardedDataset
from strata.sharding.table import canonical
from strata.types.datasets import DatasetSpec, ShardAssignment
from strata.types.names import check_name

__all__ = ["ShardManager"]

_STATE_VERSION = 1


class ShardManager:
    """Workers hold slots; tables speak of slots. A replacement that takes the slot of a dead worker moves nothing.

    Workers that join before the first lookup share the shards in hash order, whatever order they came in. Later changes
    move as few shards as possible and keep every worker within one shard of every other.

    As long as nobody was registered, a lookup registers its worker: the first one gets everything, the next ones share.
    After the first `register_worker`, only registered workers may look up.
    """

    def __init__(self, policy: Policy = "sticky") -> None:
        if policy not in get_args(Policy):
            raise InvalidArgument(
                f"shard policy {policy!r} is unknown", hint=f"Allowed: {', '.join(get_args(Policy))}."
            )
        self._policy: Policy = policy
        self._slots: dict[str, str] = {}
        self._workers: dict[str, str] = {}
        self._datasets: dict[str, ShardedDataset] = {}
        self._ordered: tuple[str, ...] | None = ()
        self._open = True  # nobody was registered by name: whoever asks joins

    @property
    def workers(self) -> tuple[str, ...]:
        """The worker ids, in the order that the indices of `assignment` refer to."""
        return tuple(self._workers[slot] for slot in self._ordered_slots())

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sorted(self._datasets))

    def register_worker(self, worker_id: str, slot: str | None = None) -> None:
        """Joins a worker, in a slot of its own unless it is given one that is free. A repeat is harmless."""
        self._open = False
        self._join(worker_id, slot)

    def _join(self, worker_id: str, slot: str | None = None) -> None:
        slot = check_name("slot", slot) if slot is not None else self._slots.get(worker_id, worker_id)
        check_name("worker", worker_id)
        if self._slots.get(worker_id) == slot:
            return
        if slot in self._workers:
            raise Conflict(f"slot {slot!r} belongs to worker {self._workers[slot]!r}", hint="Use replace_worker.")
        self.remove_worker(worker_id)
        self._slots[worker_id], self._workers[slot] = slot, worker_id
        self._ordered = None

    def remove_worker(self, worker_id: str) -> bool:
        """Forgets a worker; its shards move at the next rebalance. Says whether there was one."""
        slot = self._slots.pop(worker_id, None)
        if slot is None:
            return False
        del self._workers[slot]
        self._ordered = None
        return True

    def replace_worker(self, old: str, new: str) -> None:
        """`new` takes the slot of `old` with everything in it."""
        if new in self._slots:
            raise Conflict(f"worker {new!r} is registered already, in slot {self._slots[new]!r}")
        slot = self._slot(old)
        self.remove_worker(old)
        self.register_worker(new, slot)

    def register_dataset_params(
        self, dataset_id: str, total_samples: int, shard_size: int, shuffle: bool = True, seed: int = 0
    ) -> int:
        """Registers a dataset by its numbers alone; returns how many shards it has."""
        return self.register_dataset(
            DatasetSpec(
                dataset_id=dataset_id, total_samples=total_samples, shard_size=shard_size, shuffle=shuffle, seed=seed
            )
        )

    def register_dataset(self, spec: DatasetSpec, sizes: Sequence[int] | None = None) -> int:
        """Registers a dataset, with `sizes` where its shards differ in length. The same again is harmless."""
        known = self._datasets.get(spec.dataset_id)
        if known is None:
            known = self._datasets[spec.dataset_id] = ShardedDataset(spec, self._policy, sizes)
        elif known.spec != spec:
            raise Conflict(
                f"dataset {spec.dataset_id!r} is registered with other parameters",
                hint="Register the new data under another id.",
            )
        return known.num_shards

    def needs_rebalance(self, dataset_id: str) -> bool:
        """Whether membership changed since this dataset's table was made. O(1) when it did not."""
        table = self._dataset(dataset_id).table
        slots = self._ordered_slots()
        return table is None or (table.slots is not slots and table.slots != slots)

    def rebalance(self, dataset_id: str) -> int:
        """Brings the table up to the present membership; returns its revision, which grows with every change."""
        dataset = self._dataset(dataset_id)
        if self.needs_rebalance(dataset_id):
            dataset.apply(dataset.plan(self._ordered_slots()))
        return dataset.revision

    def get_shard_for_worker(self, dataset_id: str, worker_id: str, epoch: int = 0) -> list[ShardAssignment]:
        """A worker's shards, in the order it should read them in this epoch."""
        dataset = self._dataset(dataset_id)
        return [dataset.assignment(shard, epoch) for shard in self.shard_ids(dataset_id, worker_id, epoch).tolist()]

    def shard_ids(self, dataset_id: str, worker_id: str, epoch: int = 0) -> NDArray[np.int64]:
        """As get_shard_for_worker, as an array of numbers. Cost: the worker's shards, not the dataset's."""
        if epoch < 0:
            raise InvalidArgument(f"epoch cannot be negative: {epoch}")
        self._dataset(dataset_id)
        if self._open:
            self._join(worker_id)
        slot = self._slot(worker_id)
        self.rebalance(dataset_id)
        return self._dataset(dataset_id).shards_of(slot, epoch)

    def shard(self, dataset_id: str, shard_id: int, epoch: int = 0) -> ShardAssignment:
        """The range and the files of one shard, whoever reads it."""
        dataset = self._dataset(dataset_id)
        if not 0 <= shard_id < dataset.num_shards:
            raise InvalidArgument(f"shard {shard_id} of dataset {dataset_id!r} is outside 0…{dataset.num_shards - 1}")
        return dataset.assignment(shard_id, epoch)

    def assignment(self, dataset_id: str, epoch: int = 0) -> NDArray[np.int32]:
        """Owner of every shard as an index into `workers`; -1 everywhere while there are none."""
        if epoch < 0:
            raise InvalidArgument(f"epoch cannot be negative: {epoch}")
        self.rebalance(dataset_id)
        dataset = self._dataset(dataset_id)
        assert dataset.table is not None
        return dataset.owners(dataset.table)

    def num_assigned(self, dataset_id: str, worker_id: str) -> int:
        """How many shards a worker has."""
        slot = self._slot(worker_id)
        self.rebalance(dataset_id)
        table = self._dataset(dataset_id).table
        assert table is not None
        return len(table.units_of(slot))

    def digest(self, dataset_id: str) -> str:
        """Names the present ownership: whoever computed the same table has the same digest."""
        self.rebalance(dataset_id)
        table = self._dataset(dataset_id).table
        assert table is not None
        return table.digest

    def table_bytes(self, dataset_id: str) -> int:
        """What the ownership of a dataset costs in memory."""
        return self._dataset(dataset_id).nbytes

    def dump(self) -> dict[str, Any]:
        """The whole state as JSON. Small while nobody left or joined; else at most a few bytes per shard."""
        return {
            "version": _STATE_VERSION,
            "policy": self._policy,
            "workers": dict(sorted(self._slots.items())),
            "open": self._open,
            "datasets": [self._datasets[name].dump() for name in self.datasets],
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "ShardManager":
        if state.get("version") != _STATE_VERSION:
            raise InvalidArgument(f"shard state of version {state.get('version')!r} cannot be read by this release")
        manager = cls(state["policy"])
        for worker, slot in state["workers"].items():
            manager._join(worker, slot)
        manager._open = bool(state.get("open", not state["workers"]))
        for entry in state["datasets"]:
            dataset = ShardedDataset.load(entry)
            manager._datasets[dataset.spec.dataset_id] = dataset
        return manager

    def _ordered_slots(self) -> tuple[str, ...]:
        if self._ordered is None:
            self._ordered = canonical(self._workers)
        return self._ordered

    def _slot(self, worker_id: str) -> str:
        slot = self._slots.get(worker_id)
        if slot is None:
            raise UnknownWorker(
                f"worker {worker_id!r} is not registered", hint="Call register_worker: this manager knows its workers."
            )
        return slot

    def _dataset(self, dataset_id: str) -> ShardedDataset:
        dataset = self._datasets.get(dataset_id)
        if dataset is None:
            raise UnknownDataset(f"dataset {dataset_id!r} is not registered")
        return dataset
