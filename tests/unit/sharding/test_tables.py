"""One suite over both policies: every unit has one owner, join order does not matter, and little moves."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from strata.sharding.hashing import hash_ints
from strata.sharding.ring import plan_ring
from strata.sharding.sticky import plan_sticky
from strata.sharding.table import UNOWNED, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What changes between two tables: unit `units[i]` goes from `sources[i]` to `targets[i]` ('' is nobody)."""

    units: NDArray[np.int64]
    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)


def moves_between(table: Table, other: Table) -> Moves:
    assert table.num_units == other.num_units
    renumbered = np.array([other.row_of(slot) for slot in table.slots] or [UNOWNED], dtype=np.int32)
    # UNOWNED indexes the last entry, so the two kinds of "nobody" are told apart by the first condition.
    kept = (table.owner >= 0) & (renumbered[table.owner] == other.owner)
    units = np.flatnonzero(~kept & ((table.owner >= 0) | (other.owner >= 0)))
    return Moves(
        units=units.astype(np.int64),
        sources=tuple(table.slots[row] if row >= 0 else "" for row in table.owner[units]),
        targets=tuple(other.slots[row] if row >= 0 else "" for row in other.owner[units]),
    )


SLOTS = st.sets(st.sampled_from([f"worker-{n}" for n in range(12)]), min_size=1)
SCHEDULES = st.lists(SLOTS, min_size=1, max_size=6)


def ring_keys(num_units: int) -> "np.typing.NDArray[np.uint64]":
    return np.sort(hash_ints(np.arange(num_units, dtype=np.uint64), 5))


def check_whole(table: Table, num_units: int, slots: set[str]) -> None:
    owned = np.concatenate([table.units_of(slot) for slot in table.slots])
    assert np.array_equal(np.sort(owned), np.arange(num_units))
    assert set(table.slots) == slots
    for slot in table.slots:
        units = table.units_of(slot)
        assert np.all(table.owner[units] == table.row_of(slot))
        assert np.all(np.diff(units) > 0)


def fewest_moves(previous: Table, slots: set[str]) -> int:
    """The least that any balanced table can move: what the gone held, and what survivors hold above target."""
    held = sorted((len(previous.units_of(slot)) for slot in slots), reverse=True)
    floor, extra = divmod(previous.num_units, len(slots))
    kept = sum(min(count, floor + (place < extra)) for place, count in enumerate(held))
    return previous.num_units - kept


@given(num_units=st.integers(0, 200), schedule=SCHEDULES)
def test_sticky_is_balanced_and_moves_the_minimum(num_units: int, schedule: list[set[str]]) -> None:
    previous: Table | None = None
    for slots in schedule:
        table = plan_sticky(num_units, slots, previous)
        check_whole(table, num_units, slots)
        assert int(np.ptp(table.counts())) <= 1
        if previous is not None:
            assert len(moves_between(previous, table)) == fewest_moves(previous, slots)
        previous = table


@given(num_units=st.integers(0, 200), slots=SLOTS)
def test_first_tables_do_not_depend_on_the_order_of_joining(num_units: int, slots: set[str]) -> None:
    given_order, other_order = sorted(slots), sorted(slots, reverse=True)
    keys = ring_keys(num_units)
    assert plan_sticky(num_units, given_order).digest == plan_sticky(num_units, other_order).digest
    assert plan_ring(keys, given_order).digest == plan_ring(keys, other_order).digest


@given(num_units=st.integers(0, 300), before=SLOTS, after=SLOTS)
def test_ring_moves_only_what_touches_the_change(num_units: int, before: set[str], after: set[str]) -> None:
    keys = ring_keys(num_units)
    old, new = plan_ring(keys, before), plan_ring(keys, after)
    check_whole(old, num_units, before)
    changed = before ^ after
    moves = moves_between(old, new)
    assert all(
        source in changed or target in changed for source, target in zip(moves.sources, moves.targets, strict=True)
    )


def test_golden_tables() -> None:
    first = plan_sticky(10, ["a", "b", "c"])
    assert first.slots == ("c", "a", "b")
    assert first.digest == "cad9d39c83a6e021fd70a08a89057469"
    second = plan_sticky(10, ["a", "c"], first)
    assert second.owner.tolist() == [0, 1, 0, 0, 1, 1, 0, 1, 1, 0]
    assert second.digest == "8fb46678e7ff46fb9b8937afd8844914"
    ring = plan_ring(ring_keys(20), ["a", "b", "c"], 10)
    assert ring.owner.tolist() == [2, 0, 2, 2, 0, 1, 1, 0, 2, 1, 1, 2, 1, 1, 1, 1, 1, 2, 0, 0]


def test_digest_names_the_owners_not_only_the_counts() -> None:
    left, right = Table(("a", "b"), np.array([0, 1], np.int32)), Table(("a", "b"), np.array([1, 0], np.int32))
    renamed = Table(("a", "c"), np.array([0, 1], np.int32))
    assert len({left.digest, right.digest, renamed.digest}) == 3


def test_no_slots_means_nobody_owns_anything() -> None:
    for table in (plan_sticky(5, []), plan_ring(ring_keys(5), [])):
        assert table.owner.tolist() == [-1] * 5
        assert len(table.units_of("a")) == 0
    moves = moves_between(plan_sticky(5, []), plan_sticky(5, ["a"]))
    assert moves.sources == ("",) * 5
    assert moves.targets == ("a",) * 5


def test_tables_cannot_be_changed_in_place() -> None:
    table = plan_sticky(5, ["a"])
    with pytest.raises(ValueError, match="read-only"):
        table.owner[0] = 3
