"""One registered dataset inside the ShardManager: shards in hash order, the table of owners, both as plain JSON."""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from strata.errors import InvalidArgument
from strata.sharding.hashing import derive_key, hash_ints, hash_order
from strata.sharding.ring import plan_ring
from strata.sharding.sticky import deal, plan_sticky
from strata.sharding.table import Table
from strata.sharding.weighted import plan_weighted
from strata.types.datasets import MAX_SHARDS, DataFile, DatasetSpec, ShardAssignment

__all__ = ["FileRanges", "Policy", "ShardedDataset"]

Policy = Literal["sticky", "ring"]


class FileRanges:
    """Which files of a dataset a range of samples lies in."""

    def __init__(self, spec: DatasetSpec) -> None:
        self._spec = spec
        self._ends = np.cumsum([file.num_samples for file in spec.files], dtype=np.int64)

    def between(self, start: int, end: int) -> tuple[str, ...]:
        if not self._spec.files:
            return (self._spec.path,) if self._spec.path else ()
        low = int(np.searchsorted(self._ends, start, side="right"))
        high = int(np.searchsorted(self._ends, end, side="left")) + 1
        return tuple(file.path for file in self._spec.files[low:high] if file.num_samples)


class ShardedDataset:
    """Maps shard numbers to units (their rank in hash order) and back; the table itself speaks only of units.

    `sizes` gives every shard its own number of samples; without it all have `spec.shard_size`, the last one the rest.
    """

    def __init__(self, spec: DatasetSpec, policy: Policy, sizes: Sequence[int] | None = None) -> None:
        self.spec = spec
        self.policy: Policy = policy
        self._ends = None if sizes is None else _ends(spec, sizes)
        self.num_shards = spec.num_shards if self._ends is None else len(self._ends)
        self._key = derive_key("shards", spec.dataset_id)
        self._files = FileRanges(spec)
        self.table: Table | None = None
        self._dump: tuple[Table, dict[str, Any]] | None = None
        self.revision = 0

    @cached_property
    def _shards(self) -> NDArray[np.int32]:
        """The shard number of each unit. Computed at the first use: registering a dataset costs nothing."""
        return hash_order(self.num_shards, self._key).astype(np.int32)

    @property
    def nbytes(self) -> int:
        return self._shards.nbytes + (self.table.nbytes if self.table else 0)

    def plan(self, slots: tuple[str, ...]) -> Table:
        """The table these slots would get now. Changes nothing."""
        if self.policy == "ring":
            return plan_ring(np.sort(hash_ints(np.arange(self.num_shards, dtype=np.uint64), self._key)), slots)
        if self._ends is not None:
            weights = np.diff(self._ends, prepend=0)[self._shards]
            return plan_weighted(weights, slots, self.table)
        return plan_sticky(self.num_shards, slots, self.table)

    def apply(self, table: Table) -> None:
        if table is not self.table:
            self.table = table
            self.revision += 1

    def owners(self, table: Table) -> NDArray[np.int32]:
        """Owner by shard number, as an index into `table.slots`."""
        owner = np.empty(self.num_shards, dtype=np.int32)
        owner[self._shards] = table.owner
        return owner

    def shards_at(self, units: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(self._shards[units], dtype=np.int64)

    def shards_of(self, slot: str, epoch: int) -> NDArray[np.int64]:
        """A slot's shards in the order it reads them in this epoch. Cost: its own shards, not the dataset's."""
        assert self.table is not None
        shards = np.sort(self.shards_at(self.table.units_of(slot)))
        if not self.spec.shuffle:
            return shards
        key = derive_key("epoch", self.spec.dataset_id, self.spec.seed, epoch)
        return shards[np.argsort(hash_ints(shards.astype(np.uint64), key), kind="stable")]

    def assignment(self, shard: int, epoch: int) -> ShardAssignment:
        start, end = self._range(shard)
        return ShardAssignment(
            dataset_id=self.spec.dataset_id,
            shard_id=shard,
            total_shards=self.num_shards,
            start_index=start,
            end_index=end,
            file_paths=self._files.between(start, end),
            epoch=epoch,
        )

    def _range(self, shard: int) -> tuple[int, int]:
        if self._ends is not None:
            return int(self._ends[shard - 1]) if shard else 0, int(self._ends[shard])
        size = self.spec.shard_size
        return shard * size, min((shard + 1) * size, self.spec.total_samples)

    def dump(self) -> dict[str, Any]:
        spec = asdict(replace(self.spec, metadata=dict(self.spec.metadata)))
        sizes = None if self._ends is None else np.diff(self._ends, prepend=0).tolist()
        return {
            "spec": spec,
            "policy": self.policy,
            "sizes": sizes,
            "revision": self.revision,
            "table": None if self.table is None else self._dumped(self.table),
        }

    def _dumped(self, table: Table) -> dict[str, Any]:
        """The table as JSON, computed once per table: a million shards take 0.05 s, and snapshots are frequent."""
        if self._dump is None or self._dump[0] is not table:
            self._dump = (table, _dump_table(table))
        return self._dump[1]

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "ShardedDataset":
        fields = dict(state["spec"])
        fields["files"] = tuple(DataFile(**file) for file in fields["files"])
        dataset = cls(DatasetSpec(**fields), state["policy"], state["sizes"])
        dataset.revision = state["revision"]
        if state["table"] is not None:
            dataset.table = _load_table(state["table"], dataset.num_shards)
        return dataset


def _ends(spec: DatasetSpec, sizes: Sequence[int]) -> NDArray[np.int64]:
    if not 1 <= len(sizes) <= MAX_SHARDS:
        raise InvalidArgument(f"dataset {spec.dataset_id!r} has {len(sizes)} shards; allowed are 1 to {MAX_SHARDS}")
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
    if min(sizes) < 0 or int(ends[-1]) != spec.total_samples:
        raise InvalidArgument(
            f"the shard sizes of dataset {spec.dataset_id!r} add up to {int(ends[-1])}, the smallest is {min(sizes)}; "
            f"total_samples is {spec.total_samples}"
        )
    return ends


def _dump_table(table: Table) -> dict[str, Any]:
    # A table that nobody has left or joined is the dealt one: its slots say it all.
    dealt = np.array_equal(table.owner, deal(table.num_units, table.slots).owner)
    kind = "<i2" if len(table.slots) < 1 << 15 else "<i4"
    return {
        "slots": list(table.slots),
        "owner": "" if dealt else base64.b64encode(zlib.compress(table.owner.astype(kind).tobytes(), 1)).decode(),
        "kind": kind,
    }


def _load_table(state: Mapping[str, Any], num_units: int) -> Table:
    slots = tuple(state["slots"])
    if not state["owner"]:
        return deal(num_units, slots)
    packed = zlib.decompress(base64.b64decode(state["owner"]))
    return Table(slots, np.frombuffer(packed, dtype=state.get("kind", "<i4")).astype(np.int32))
