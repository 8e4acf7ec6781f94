"""One registered dataset inside the ShardManager: shards in hash order, the table of owners, both as plain JSON."""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from strata.sharding.hashing import derive_key, hash_ints, hash_order
from strata.sharding.ring import plan_ring
from strata.sharding.sticky import deal, plan_sticky
from strata.sharding.table import Table
from strata.types.datasets import DataFile, DatasetSpec, ShardAssignment

__all__ = ["FileRanges", "Policy", "ShardedDataset"]

Policy = Literal["sticky", "ring"]


class FileRanges:
    """Knows which files of a dataset a range of samples lies in."""

    def __init__(self, spec: DatasetSpec) -> None:
        self._spec = spec
        self._ends = np.cumsum([file.num_samples for file in spec.files], dtype=np.int64)

    def assignment(self, shard: int, start: int, end: int, epoch: int) -> ShardAssignment:
        """Samples `start` up to `end` of a shard, and the files they are in."""
        return ShardAssignment(
            dataset_id=self._spec.dataset_id,
            shard_id=shard,
            total_shards=self._spec.num_shards,
            start_index=start,
            end_index=end,
            file_paths=self._between(start, end),
            epoch=epoch,
        )

    def _between(self, start: int, end: int) -> tuple[str, ...]:
        if not self._spec.files:
            return (self._spec.path,) if self._spec.path else ()
        low = int(np.searchsorted(self._ends, start, side="right"))
        high = int(np.searchsorted(self._ends, end, side="left")) + 1
        return tuple(file.path for file in self._spec.files[low:high] if file.num_samples)


class ShardedDataset:
    """Maps shard numbers to units (their rank in hash order) and back; the table itself speaks only of units."""

    def __init__(self, spec: DatasetSpec, policy: Policy) -> None:
        self.spec = spec
        self.policy: Policy = policy
        self.num_shards = spec.num_shards
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

    def shards_of(self, slot: str, epoch: int) -> NDArray[np.int64]:
        """A slot's shards in the order it reads them in this epoch. Cost: its own shards, not the dataset's."""
        assert self.table is not None
        shards = np.sort(self._shards[self.table.units_of(slot)]).astype(np.int64)
        if not self.spec.shuffle:
            return shards
        key = derive_key("epoch", self.spec.dataset_id, self.spec.seed, epoch)
        return shards[np.argsort(hash_ints(shards.astype(np.uint64), key), kind="stable")]

    def assignment(self, shard: int, epoch: int) -> ShardAssignment:
        size = self.spec.shard_size
        return self._files.assignment(shard, shard * size, min((shard + 1) * size, self.spec.total_samples), epoch)

    def dump(self) -> dict[str, Any]:
        return {
            "spec": asdict(replace(self.spec, metadata=dict(self.spec.metadata))),
            "policy": self.policy,
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
        dataset = cls(DatasetSpec(**fields), state["policy"])
        dataset.revision = state["revision"]
        if state["table"] is not None:
            dataset.table = _load_table(state["table"], dataset.num_shards)
        return dataset


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
