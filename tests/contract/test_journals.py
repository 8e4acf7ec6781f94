"""One suite over every journal: order, durability, snapshots, and what is kept apart from the records."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from strata.coordinator.journal.base import Journal, Record, Snapshot, Stored
from strata.coordinator.journal.postgres import PostgresJournal
from strata.coordinator.journal.sqlite import SqliteJournal
from strata.errors import InvalidConfig, NotLeader
from tests.support.journals import Owner, records
from tests.support.memory_journal import MemoryJournal
from tests.support.postgres import Postgres

Open = Callable[[], Journal]
_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Gives a journal over the same storage each time, as a new process would."""
    if request.param == "sqlite":
        return lambda: SqliteJournal(tmp_path)
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").new_database()
        return lambda: PostgresJournal(url, "token")
    memory = MemoryJournal()
    return lambda: memory


async def test_it_starts_empty_and_keeps_what_it_was_given(make: Open) -> None:
    owner = await Owner.open(make())
    assert owner.stored == Stored(None, [], [])
    assert (owner.stored.snapshot_seq, owner.stored.last_seq) == (0, 0)
    owner.journal.append(records(1, 3))
    owner.journal.append(records(4, 4))
    await owner.reach(4)
    await owner.journal.close()
    again = await Owner.open(make())
    assert again.stored.records == records(1, 4)
    await again.journal.close()


async def test_what_is_queued_at_the_end_is_written(make: Open) -> None:
    owner = await Owner.open(make())
    owner.journal.append(records(1, 100))
    await owner.journal.close()
    again = await Owner.open(make())
    assert again.stored.records == records(1, 100)
    await again.journal.close()


async def test_a_body_in_parts_is_stored_whole(make: Open) -> None:
    owner = await Owner.open(make())
    owner.journal.append([Record(1, 1.5, "Kind", b"{", (b"names", b"}"))])
    await owner.journal.close()
    again = await Owner.open(make())
    assert [(record.seq, record.body) for record in again.stored.records] == [(1, b"{names}")]
    await again.journal.close()


async def test_a_snapshot_stands_for_the_records_before_it(make: Open) -> None:
    owner = await Owner.open(make())
    owner.journal.append(records(1, 5))
    owner.journal.save_snapshot(Snapshot(5, b"first", 6))
    owner.journal.append(records(6, 7))
    owner.journal.save_snapshot(Snapshot(7, b"second", 8))
    owner.journal.append(records(8, 9))
    await owner.reach(9)
    await owner.journal.close()
    again = await Owner.open(make())
    assert again.stored == Stored(Snapshot(7, b"second", 8), [], records(8, 9))
    assert (again.stored.snapshot_seq, again.stored.last_seq) == (7, 9)
    await again.journal.close()


async def test_outcomes_that_a_snapshot_left_out_come_with_it(make: Open) -> None:
    owner = await Owner.open(make())
    outcomes = [Record(seq, 1.5, kind, b"{}") for seq, kind in ((4, "BarrierReleased"), (6, "BarrierBroke"))]
    earlier = Record(2, 1.5, "BarrierReleased", b"{}")
    owner.journal.append([*records(1, 1), earlier, *records(3, 3), outcomes[0], *records(5, 5), outcomes[1]])
    owner.journal.save_snapshot(Snapshot(6, b"s", 4))
    after = Record(7, 1.5, "BarrierReleased", b"{}")
    owner.journal.append([after])
    await owner.reach(7)
    await owner.journal.close()
    again = await Owner.open(make())
    assert again.stored == Stored(Snapshot(6, b"s", 4), outcomes, [after])
    await again.journal.close()


async def test_private_values_are_kept_by_name_and_are_in_no_record(make: Open) -> None:
    owner = await Owner.open(make())
    owner.journal.append(records(1, 1), {"a": b"first"})
    owner.journal.append(records(2, 2), {"a": b"second", "b": b"other"})
    owner.journal.save_snapshot(Snapshot(2, b"s", 3))
    await owner.reach(2)
    await owner.journal.close()
    again = await Owner.open(make())
    assert again.stored.private == {"a": b"second", "b": b"other"}
    await again.journal.close()


async def test_every_commit_is_timed_once(make: Open) -> None:
    owner = await Owner.open(make())
    owner.journal.append(records(1, 3))
    await owner.reach(3)
    assert all(seconds >= 0 for seconds in owner.journal.take_commit_times())
    assert owner.journal.take_commit_times() == []
    await owner.journal.close()


async def test_what_is_kept_becomes_durable_in_its_order(make: Open) -> None:
    owner = await Owner.open(make())
    owner.journal.append(records(1, 1))
    await owner.reach(1)
    kept = [owner.journal.keep(record) for record in records(2, 3)]
    assert len(set(kept)) == 1
    owner.journal.append(records(4 if kept[0] else 2, 5))
    await owner.reach(5)
    if kept[0]:
        owner.journal.keep(*records(6, 6))
        await owner.reach(6)  # by itself
    await owner.journal.close()
    again = await Owner.open(make())
    assert again.stored.records == records(1, 6 if kept[0] else 5)
    await again.journal.close()


# --- kills

_APPEND = """
import asyncio, sys
from strata.coordinator.journal.postgres import PostgresJournal
from strata.coordinator.journal.sqlite import SqliteJournal
from tests.support.journals import records
from pathlib import Path

async def main(kind, place):
    journal = PostgresJournal(place, "token") if kind == "postgres" else SqliteJournal(Path(place))
    durable = 0
    def on_durable(seq):
        nonlocal durable
        durable = seq
        print(seq, flush=True)
    stored = await journal.open(on_durable, lambda error: print("failed", error, flush=True))
    seq = durable = stored.last_seq
    while True:
        if seq < durable + 300:  # or each commit would be larger than the one before, without end
            journal.append(records(seq + 1, seq + 3))
            seq += 3
        await asyncio.sleep(0)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_writer_that_is_killed_in_a_commit_loses_nothing_that_was_durable(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Most of its time is COMMIT, so most kills fall into one."""
    place = str(tmp_path) if kind == "sqlite" else await asyncio.to_thread(_new_database, request)
    for lines in (3, 17):
        told = await asyncio.to_thread(_killed_writer, kind, place, lines)
        owner = await Owner.open(PostgresJournal(place, "token") if kind == "postgres" else SqliteJournal(tmp_path))
        assert owner.stored.last_seq >= told
        assert owner.stored.records == records(1, owner.stored.last_seq)
        await owner.journal.close()


def _killed_writer(kind: str, place: str, lines: int) -> int:
    """The last record that a process was told is durable before it was killed."""
    command = [sys.executable, "-c", _APPEND, kind, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.kill()
        return max(map(int, process.stdout.read().split()), default=0)


async def test_a_commit_whose_backend_is_killed_is_read_back(request: pytest.FixtureRequest) -> None:
    """Once after the COMMIT that nobody was told of, once before it: both take effect once."""
    server: Postgres = request.getfixturevalue("postgres")
    url = await asyncio.to_thread(server.new_database)
    owner = await Owner.open(PostgresJournal(url, "token"))
    owner.journal.append(records(1, 2))
    await owner.reach(2)
    with server.commits_that_wait():
        owner.journal.append(records(3, 4))
        await asyncio.to_thread(server.end_backend, url, "SyncRep")
    await owner.reach(4)
    with server.locked_lease(url):
        owner.journal.append(records(5, 6))
        await asyncio.to_thread(server.end_backend, url, "transactionid")
    await owner.reach(6)
    owner.journal.append(records(7, 7))
    await owner.reach(7)
    assert owner.failure is None
    await owner.journal.close()
    again = await Owner.open(PostgresJournal(url, "token"))
    assert again.stored.records == records(1, 7)
    await again.journal.close()


async def test_the_next_holder_fences_the_one_before(request: pytest.FixtureRequest) -> None:
    url = await asyncio.to_thread(_new_database, request)
    first = await Owner.open(PostgresJournal(url, "token"))
    first.journal.append(records(1, 1))
    await first.reach(1)
    await asyncio.to_thread(
        request.getfixturevalue("postgres").ask,
        "UPDATE strata_lease SET holder = ''",
        database=url.rpartition("/")[2],
    )
    second = await Owner.open(PostgresJournal(url, "token"))
    first.journal.append(records(2, 2))
    await first.reach(2)
    assert isinstance(first.failure, NotLeader)
    assert not first.journal.leads()
    assert second.journal.leads()
    second.journal.append(records(2, 2))
    await second.reach(2)
    await first.journal.close()
    await second.journal.close()


async def test_of_many_that_start_at_once_on_an_empty_database_one_leads(request: pytest.FixtureRequest) -> None:
    url = await asyncio.to_thread(_new_database, request)
    opening = [asyncio.create_task(Owner.open(PostgresJournal(url, "token"))) for _ in range(8)]
    done, waiting = await asyncio.wait(opening, return_when=asyncio.FIRST_COMPLETED)
    (leader,) = done
    leader.result().journal.append(records(1, 1))
    await leader.result().reach(1)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await leader.result().journal.close()


async def test_another_cluster_is_kept_out(request: pytest.FixtureRequest) -> None:
    url = await asyncio.to_thread(_new_database, request)
    owner = await Owner.open(PostgresJournal(url, "token"))
    with pytest.raises(InvalidConfig, match="another token"):
        await Owner.open(PostgresJournal(url, "another"))
    await owner.journal.close()


def _new_database(request: pytest.FixtureRequest) -> str:
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()
