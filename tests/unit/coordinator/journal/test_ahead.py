"""What was told before it is durable, in the file that outlives the process."""

import os
from pathlib import Path

import pytest

from strata.coordinator.journal.ahead import Ahead
from strata.coordinator.journal.base import Record
from tests.support.journals import records
from tests.support.small_disk import fill, small_disk


def opened(path: Path, last_seq: int = 0) -> tuple[Ahead, list[Record]]:
    ahead = Ahead(path)
    return ahead, ahead.open(last_seq)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ahead"


def test_what_was_put_is_found_again(path: Path) -> None:
    ahead, found = opened(path)
    assert found == []
    assert all(ahead.put(record) for record in records(8, 10))
    assert [opened(path, last)[1] for last in (7, 8, 10, 11)] == [records(8, 10), records(9, 10), [], []]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_body_in_parts_is_found_whole(path: Path) -> None:
    ahead, _ = opened(path)
    parts = Record(1, 1.5, "Kind", b"{", (b"names", b"}"))
    assert ahead.put(parts)
    assert ahead.put(*records(2, 2))
    whole = Record(1, 1.5, "Kind", b"{names}")
    assert (parts.body, parts.size) == (whole.body, whole.size)
    assert opened(path)[1] == [whole, *records(2, 2)]


def test_what_does_not_continue_the_journal_is_left_alone(path: Path) -> None:
    """A journal that somebody has put back to yesterday."""
    ahead, _ = opened(path)
    assert ahead.put(*records(8, 8))
    assert opened(path, 3)[1] == []


def test_it_begins_anew_when_all_of_it_is_durable(path: Path) -> None:
    ahead, _ = opened(path)
    for record in records(1, 5):
        assert ahead.put(record)
    ahead.forget(4)
    assert ahead.put(*records(6, 6))
    assert opened(path, 4)[1] == records(5, 6)
    ahead.forget(6)
    assert ahead.put(*records(7, 7))
    assert opened(path, 6)[1] == records(7, 7), "what is behind it is older"


def test_one_that_was_not_written_whole_was_not_told(path: Path) -> None:
    ahead, _ = opened(path)
    for record in records(1, 2):
        assert ahead.put(record)
    size = path.read_bytes().rstrip(b"\0").__len__()
    with path.open("r+b") as file:
        file.seek(size - 3)
        file.write(b"???")
    assert opened(path)[1] == records(1, 1)
    path.write_bytes(os.urandom(5000))
    assert opened(path)[1] == []


def test_it_is_full_and_empty_again(path: Path) -> None:
    ahead, _ = opened(path)
    large = [Record(seq, 1.5, "Kind", bytes(400_000)) for seq in (1, 2, 3)]
    assert [ahead.put(record) for record in large] == [True, True, False]
    ahead.forget(2)
    assert ahead.put(large[2])
    assert opened(path, 2)[1] == large[2:]


def test_it_has_its_whole_length_from_the_start(path: Path) -> None:
    ahead, _ = opened(path)
    length, blocks = path.stat().st_size, path.stat().st_blocks
    assert blocks * 512 >= length >= 1 << 20
    ahead.put(*records(1, 1))
    opened(path)
    assert path.stat().st_size == length


def test_where_it_cannot_be_nothing_is_told_early(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.mkdir()
    ahead, found = opened(path)
    assert found == []
    assert not ahead.put(*records(1, 1))
    assert "every release of a barrier waits for the disk" in caplog.text
    ahead.forget(1)
    ahead.close()


def test_a_full_disk_takes_nothing_from_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", size_mb=2) as folder:
        ahead, _ = opened(folder / "ahead")
        fill(folder / "filler")
        assert all(ahead.put(record) for record in records(1, 3))
        ahead.close()
        again, found = opened(folder / "ahead")
        assert found == records(1, 3)
        again.close()


def test_on_a_disk_that_was_full_before_nothing_is_told_that_is_not_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", size_mb=2) as folder:
        fill(folder / "filler")
        ahead, _ = opened(folder / "ahead")
        large = Record(1, 1.5, "Kind", bytes(400_000))
        assert not ahead.put(large)
        ahead.close()
        assert opened(folder / "ahead")[1] == []
