"""What only one journal can get wrong; what all must do is in tests/contract/test_journals.py."""

import json
import os
import resource
import shutil
import sqlite3
from pathlib import Path

import pytest

from strata.coordinator.journal.base import Record, Snapshot
from strata.coordinator.journal.sqlite import SqliteJournal, read_journal
from strata.errors import DataDirInUse, InvalidConfig
from tests.support.journals import Owner, records
from tests.support.memory_journal import MemoryJournal


async def test_memory_crashes_on_purpose() -> None:
    journal = MemoryJournal()
    owner = await Owner.open(journal)
    journal.append(records(1, 2))
    journal.hold = True
    journal.append(records(3, 3))
    journal.save_snapshot(Snapshot(3, b"ahead of what is durable", 4))
    assert owner.durable == 2
    journal.crash()
    again = await Owner.open(journal)
    assert again.stored.records == records(1, 2)
    assert again.stored.snapshot is None


async def test_many_appends_share_commits(tmp_path: Path) -> None:
    owner = await Owner.open(SqliteJournal(tmp_path))
    for seq in range(1, 2_001):
        owner.journal.append(records(seq, seq))
    await owner.reach(2_000)
    commits = owner.journal.take_commit_times()
    assert 0 < len(commits) < 2_000
    assert all(seconds > 0 for seconds in commits)
    assert owner.journal.take_commit_times() == []
    await owner.journal.close()


async def test_the_disk_is_really_asked(tmp_path: Path) -> None:
    owner = await Owner.open(SqliteJournal(tmp_path))
    owner.journal.append(records(1, 1))
    await owner.reach(1)
    with sqlite3.connect(tmp_path / "journal.db") as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert other.execute("SELECT count(*) FROM records").fetchone() == (1,)
    other.close()
    await owner.journal.close()


async def test_the_wal_is_long_from_the_start_and_a_crash_leaves_a_journal(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    owner = await Owner.open(SqliteJournal(first))
    owner.journal.append(records(1, 3))
    await owner.reach(3)
    assert (first / "journal.db-wal").stat().st_size == 8 << 20
    for name in ("journal.db", "journal.db-wal"):  # what a host that lost its power finds on its disk
        shutil.copy(first / name, tmp_path / name)
    await owner.journal.close()
    again = await Owner.open(SqliteJournal(tmp_path))
    assert again.stored.records == records(1, 3)
    again.journal.append(records(4, 4))
    await again.reach(4)
    await again.journal.close()
    assert read_journal(tmp_path).records == records(1, 4)


async def test_a_writer_that_never_pauses_does_not_make_the_wal_longer(tmp_path: Path) -> None:
    owner = await Owner.open(SqliteJournal(tmp_path))
    body = bytes(100_000)
    for seq in range(1, 401):  # 40 MB, one commit each
        owner.journal.append([Record(seq, 1.0, "Kind", body)])
        await owner.reach(seq)
    assert (tmp_path / "journal.db-wal").stat().st_size < 20 << 20
    await owner.journal.close()
    assert [record.seq for record in read_journal(tmp_path).records] == list(range(1, 401))


async def test_where_there_is_no_room_for_a_long_wal_it_stays_short(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel refuses to let files grow, as a full disk would."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        owner = await Owner.open(SqliteJournal(tmp_path))
        owner.journal.append(records(1, 3))
        await owner.reach(3)
        assert (tmp_path / "journal.db-wal").stat().st_size < 1 << 19, "what room is left is for commits"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    await owner.journal.close()
    assert "the journal's WAL is left short, so that commits take longer: File too large" in caplog.text
    assert read_journal(tmp_path).records == records(1, 3)


async def test_a_second_owner_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    owner = await Owner.open(SqliteJournal(tmp_path))
    with pytest.raises(DataDirInUse, match=f"pid {os.getpid()}"):
        await Owner.open(SqliteJournal(tmp_path))
    await owner.journal.close()
    await (await Owner.open(SqliteJournal(tmp_path))).journal.close()


async def test_a_journal_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    await (await Owner.open(SqliteJournal(tmp_path))).journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(InvalidConfig, match="schema version 99"):
        await Owner.open(SqliteJournal(tmp_path))


async def test_old_records_go_with_the_snapshot(tmp_path: Path) -> None:
    owner = await Owner.open(SqliteJournal(tmp_path))
    forgotten, remembered = (Record(seq, 1.5, "BarrierReleased", b"{}") for seq in (3, 5))
    owner.journal.append([*records(1, 2), forgotten, *records(4, 4), remembered, *records(6, 8)])
    owner.journal.save_snapshot(Snapshot(7, b"s", 5))
    await owner.journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as other:
        kept = [seq for (seq,) in other.execute("SELECT seq FROM records ORDER BY seq")]
    other.close()
    assert kept == [5, 8], "an outcome lives as long as the state remembers it"


async def test_a_journal_of_the_first_version_is_lifted(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.db") as first:
        first.executescript(
            """
            CREATE TABLE records
                (seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL) STRICT;
            CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
            INSERT INTO records VALUES (1, 1.5, 'BarrierReleased', x'78'), (2, 1.5, 'Kind', CAST('body' AS BLOB));
            PRAGMA user_version = 1;
            """
        )
        first.execute("INSERT INTO snapshots VALUES (1, ?)", (_snapshot_with_env("a", {"KEY": "in a snapshot"}),))
        submitted = json.dumps({"task_id": "b", "env": {"KEY": "in a record"}}).encode()
        first.execute("INSERT INTO records VALUES (3, 1.5, 'TaskSubmitted', ?)", (submitted,))
    first.close()
    owner = await Owner.open(SqliteJournal(tmp_path))
    assert owner.stored.snapshot is not None
    assert owner.stored.outcomes == [], "its snapshots held them"
    plain, submitted_record = owner.stored.records
    assert plain == Record(2, 1.5, "Kind", b"body")
    assert json.loads(submitted_record.body) == {"task_id": "b", "env": {"KEY": "***"}}
    private = {name: json.loads(body) for name, body in owner.stored.private.items()}
    assert private == {"a": {"KEY": "in a snapshot"}, "b": {"KEY": "in a record"}}
    await owner.journal.close()


def _snapshot_with_env(task_id: str, env: dict[str, str]) -> bytes:
    """As versions before the third wrote it, as far as it matters here."""
    return json.dumps({"tasks": {"tasks": [{"task_id": task_id, "spec": {"env": env}}]}}).encode()


async def test_a_write_that_fails_is_reported_and_nothing_after_it_is_promised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owner = await Owner.open(SqliteJournal(tmp_path))
    owner.journal.append(records(1, 1))
    await owner.reach(1)
    owner.journal.append(records(1, 1))  # the number exists: the database refuses it
    await owner.reach(2)
    assert isinstance(owner.failure, sqlite3.IntegrityError)
    owner.journal.append(records(2, 2))
    await owner.journal.close()
    assert owner.durable == 1
    assert "the journal cannot be written" in caplog.text
