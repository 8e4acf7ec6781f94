"""Who owns which unit: one immutable table of owners with a CSR index. A unit is a shard or a lane, in hash order.

12 bytes per unit. Tables are made by the policies (sticky, ring, weighted) and never changed in place.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from strata.sharding.hashing import hash_name

__all__ = ["UNOWNED", "Table", "canonical"]

UNOWNED = -1


def canonical(slots: Iterable[str]) -> tuple[str, ...]:
    """Slots in hash order: the same whatever the order of joining. What is in order already comes back as it is."""
    ordered = tuple(sorted(set(slots), key=lambda slot: (hash_name(slot), slot)))
    return slots if isinstance(slots, tuple) and slots == ordered else ordered


class Table:
    """`owner[unit]` is an index into `slots`, or UNOWNED when there are no slots; `units_of(slot)` is one slice."""

    __slots__ = ("_digest", "_rows", "num_units", "offsets", "order", "owner", "slots")

    def __init__(
        self,
        slots: tuple[str, ...],
        owner: NDArray[np.int32],
        order: NDArray[np.int32] | None = None,
        offsets: NDArray[np.int64] | None = None,
    ) -> None:
        self.slots = slots
        self.owner = owner
        self.num_units = len(owner)
        if order is None or offsets is None:
            order = np.argsort(owner, kind="stable").astype(np.int32)
            counts = np.bincount(owner[owner >= 0], minlength=len(slots))
            offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self.order = order if slots else order[:0]
        self.offsets = offsets
        self._rows = {slot: row for row, slot in enumerate(slots)}
        self._digest = ""
        for array in (self.owner, self.order, self.offsets):
            array.flags.writeable = False

    @property
    def nbytes(self) -> int:
        return self.owner.nbytes + self.order.nbytes + self.offsets.nbytes

    @property
    def digest(self) -> str:
        """Equal digests mean equal ownership: a worker that computed its own table compares before it reads."""
        if not self._digest:
            digest = blake2b("\0".join(self.slots).encode(), digest_size=16)
            digest.update(self.owner.astype("<i4", copy=False).tobytes())
            self._digest = digest.hexdigest()
        return self._digest

    def row_of(self, slot: str) -> int:
        """The index of a slot, or UNOWNED when it has no place in this table."""
        return self._rows.get(slot, UNOWNED)

    def units_of(self, slot: str) -> NDArray[np.int32]:
        """The units of a slot, ascending; a read-only view, O(1)."""
        row = self._rows.get(slot)
        if row is None:
            return self.order[:0]
        return self.order[self.offsets[row] : self.offsets[row + 1]]

    def counts(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)
