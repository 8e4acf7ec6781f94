"""One suite over every journal: order, durability, snapshots, and what is kept apart from the records."""

from collections.abc import Callable
from pathlib import Path

import pytest

from strata.coordinator.journal.base import Journal, Record, Snapshot, Stored
from strata.coordinator.journal.sqlite import SqliteJournal
from tests.support.journals import Owner, records
from tests.support.memory_journal import MemoryJournal

Open = Callable[[], Journal]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Gives a journal over the same storage each time, as a new process would."""
    if request.param == "sqlite":
        return lambda: SqliteJournal(tmp_path)
    memory = MemoryJournal()
    return lambda: memory


async def test_it_starts_empty_and_keeps_what_it_was_given(make: Open) -> None:
    owner = Owner(make())
    assert owner.stored == Stored(None, [], [])
    assert (owner.stored.snapshot_seq, owner.stored.last_seq) == (0, 0)
    owner.journal.append(records(1, 3))
    owner.journal.append(records(4, 4))
    await owner.reach(4)
    owner.journal.close()
    again = Owner(make())
    assert again.stored.records == records(1, 4)
    again.journal.close()


async def test_what_is_queued_at_the_end_is_written(make: Open) -> None:
    owner = Owner(make())
    owner.journal.append(records(1, 100))
    owner.journal.close()
    again = Owner(make())
    assert again.stored.records == records(1, 100)
    again.journal.close()


async def test_a_snapshot_stands_for_the_records_before_it(make: Open) -> None:
    owner = Owner(make())
    owner.journal.append(records(1, 5))
    owner.journal.save_snapshot(Snapshot(5, b"first", 6))
    owner.journal.append(records(6, 7))
    owner.journal.save_snapshot(Snapshot(7, b"second", 8))
    owner.journal.append(records(8, 9))
    await owner.reach(9)
    owner.journal.close()
    again = Owner(make())
    assert again.stored == Stored(Snapshot(7, b"second", 8), [], records(8, 9))
    assert (again.stored.snapshot_seq, again.stored.last_seq) == (7, 9)
    again.journal.close()


async def test_outcomes_that_a_snapshot_left_out_come_with_it(make: Open) -> None:
    owner = Owner(make())
    outcomes = [Record(seq, 1.5, kind, b"{}") for seq, kind in ((4, "BarrierReleased"), (6, "BarrierBroke"))]
    earlier = Record(2, 1.5, "BarrierReleased", b"{}")
    owner.journal.append([*records(1, 1), earlier, *records(3, 3), outcomes[0], *records(5, 5), outcomes[1]])
    owner.journal.save_snapshot(Snapshot(6, b"s", 4))
    after = Record(7, 1.5, "BarrierReleased", b"{}")
    owner.journal.append([after])
    await owner.reach(7)
    owner.journal.close()
    again = Owner(make())
    assert again.stored == Stored(Snapshot(6, b"s", 4), outcomes, [after])
    again.journal.close()


async def test_private_values_are_kept_by_name_and_are_in_no_record(make: Open) -> None:
    owner = Owner(make())
    owner.journal.append(records(1, 1), {"a": b"first"})
    owner.journal.append(records(2, 2), {"a": b"second", "b": b"other"})
    owner.journal.save_snapshot(Snapshot(2, b"s", 3))
    await owner.reach(2)
    owner.journal.close()
    again = Owner(make())
    assert again.stored.private == {"a": b"second", "b": b"other"}
    again.journal.close()


async def test_every_commit_is_timed_once(make: Open) -> None:
    owner = Owner(make())
    owner.journal.append(records(1, 3))
    await owner.reach(3)
    assert all(seconds >= 0 for seconds in owner.journal.take_commit_times())
    assert owner.journal.take_commit_times() == []
    owner.journal.close()
