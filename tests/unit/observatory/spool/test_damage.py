"""Damage on the spool's disk: a flipped bit costs one batch at most, and that one is counted and told."""

import json
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.observatory.spool.spool import Damage, Progress, Spool

_GIVEN = [b"%02d" % number * size for number, size in enumerate([3, 30, 0, 12, 50, 1, 20, 40])]


class Told:
    """A spool, and what it told of damage."""

    def __init__(self, folder: Path) -> None:
        self.news: list[tuple[str, str]] = []
        self.spool = Spool(folder, segment_bytes=150, on_damage=lambda what, why: self.news.append((what, why)))
        self.spool.open()

    def payloads(self, start: int = 0) -> list[bytes]:
        piece = self.spool.read(start, limit=self.spool.end, max_bytes=1 << 62)
        assert piece.end == self.spool.end
        return [record.payload for record in piece.records]


def fill(folder: Path) -> list[int]:
    told = Told(folder)
    ends = [told.spool.append([(told.spool.digest(f"b{n}"), one)])[0] for n, one in enumerate(_GIVEN)]
    told.spool.close()
    return ends


def flip(file: Path, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    fill(folder)
    return folder


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_one_flipped_bit_anywhere_loses_one_batch_at_most_and_it_is_counted(
    filled: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    for file in filled.glob("*"):
        (folder / file.name).write_bytes(file.read_bytes())
    file = data.draw(st.sampled_from(sorted(one for one in folder.glob("*.segment") if one.stat().st_size)))
    flip(file, data.draw(st.integers(0, file.stat().st_size * 8 - 1)))
    told = Told(folder)
    found = told.payloads()
    lost = [one for one in _GIVEN if one not in found]
    assert len(lost) <= 1
    assert found == [one for one in _GIVEN if one not in lost]
    assert told.spool.damage.places == len(told.news) == len(lost)
    told.spool.append([(told.spool.digest("new"), b"new")])
    assert told.payloads() == [*found, b"new"]
    told.spool.close()
    again = Told(folder)
    assert again.payloads() == [*found, b"new"]
    again.spool.close()


def test_damage_that_was_passed_stays_counted_over_a_restart(tmp_path: Path) -> None:
    ends = fill(tmp_path)
    first = min(tmp_path.glob("*.segment"))
    flip(first, (40 + 32) * 8)
    told = Told(tmp_path)
    assert told.spool.damage.places == 1
    told.spool.save(Progress(consumed=ends[3], pending=ends[3]))
    told.spool.trim()
    told.spool.close()
    again = Told(tmp_path)
    assert again.spool.damage.places == 1
    assert again.spool.damage.num_bytes > 0
    assert again.payloads(ends[3]) == _GIVEN[4:]
    again.spool.close()


def test_a_segment_that_is_gone_costs_only_its_own_batches(tmp_path: Path) -> None:
    fill(tmp_path)
    files = sorted(tmp_path.glob("*.segment"))
    assert len(files) >= 3
    files[1].unlink()
    told = Told(tmp_path)
    found = told.payloads()
    assert found[0] == _GIVEN[0]
    assert found[-1] == _GIVEN[-1]
    assert told.spool.damage.places == 1
    told.spool.close()


def test_a_damaged_state_sends_what_is_here_again_and_says_so(tmp_path: Path) -> None:
    ends = fill(tmp_path)
    told = Told(tmp_path)
    told.spool.save(Progress(consumed=ends[0], pending=ends[0]))
    told.spool.close()
    state = tmp_path / "state.json"
    state.write_text(state.read_text().replace(f'"consumed": {ends[0]}', f'"consumed": {ends[0] + 1}'))
    again = Told(tmp_path)
    assert again.spool.progress.consumed == 0
    assert again.payloads() == _GIVEN
    assert "stored twice" in again.news[0][1]
    again.spool.close()


def old_record(payload: bytes) -> bytes:
    digest = Spool.digest(payload.decode())
    return struct.pack("<II16s", len(payload), zlib.crc32(payload, zlib.crc32(digest)), digest) + payload


def old_folder(folder: Path, data: bytes) -> None:
    """As a release before marks left it."""
    (folder / f"{0:020d}.spool").write_bytes(data)
    (folder / "state.json").write_text(json.dumps({"spool_id": "old", "consumed": 0, "pending": 0}))


def test_files_of_an_earlier_release_are_read_and_not_appended_to(tmp_path: Path) -> None:
    old_folder(tmp_path, old_record(b"one") + old_record(b"two") + old_record(b"three")[:-2])
    told = Told(tmp_path)
    assert told.payloads() == [b"one", b"two"]
    assert told.spool.has(Spool.digest("two"))
    assert told.spool.damage == Damage()
    told.spool.append([(told.spool.digest("new"), b"new")])
    assert told.payloads() == [b"one", b"two", b"new"]
    told.spool.close()
    again = Told(tmp_path)
    assert again.spool.spool_id == "old"
    assert again.payloads() == [b"one", b"two", b"new"]
    again.spool.save(Progress(consumed=again.spool.end, pending=again.spool.end))
    again.spool.trim()
    assert not list(tmp_path.glob("*.spool"))
    assert again.spool.has(Spool.digest("one"))
    again.spool.close()


def test_a_damaged_batch_of_an_earlier_release_does_not_take_those_behind_it(tmp_path: Path) -> None:
    old_folder(tmp_path, old_record(b"one") + old_record(b"evil").replace(b"evil", b"bad!") + old_record(b"three"))
    told = Told(tmp_path)
    assert told.payloads() == [b"one", b"three"]
    assert told.spool.damage.places == 1
    told.spool.close()
