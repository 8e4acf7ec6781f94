"""Archives of code on the coordinator's side: whole or not at all, in any order of parts, and not for ever."""

import hashlib
import os
from pathlib import Path

import pytest

from strata.coordinator.engine import archives as module
from strata.coordinator.engine.archives import Archives
from strata.errors import InvalidArgument, NotFound
from strata.types.code import PART_BYTES

_DATA = os.urandom(2 * PART_BYTES + 5)


def _digest(data: bytes = _DATA) -> str:
    return hashlib.sha256(data).hexdigest()


def _put(archives: Archives, data: bytes) -> str:
    for offset in range(0, len(data), PART_BYTES):
        archives.put(_digest(data), len(data), offset, data[offset : offset + PART_BYTES])
    return _digest(data)


def _get(archives: Archives, digest: str) -> bytes:
    found = b""
    while True:
        part, total = archives.get(digest, len(found))
        found += part
        if len(found) == total:
            return found


def test_parts_come_twice_and_from_two_at_once(tmp_path: Path) -> None:
    archives = Archives(tmp_path, set)
    assert not archives.put(_digest(), len(_DATA), 0, b"")
    for offset in (0, 0, PART_BYTES, PART_BYTES):
        assert not archives.put(_digest(), len(_DATA), offset, _DATA[offset : offset + PART_BYTES])
    last = 2 * PART_BYTES
    assert archives.put(_digest(), len(_DATA), last, _DATA[last:])
    assert archives.put(_digest(), len(_DATA), last, _DATA[last:]), "the other one finds it there"
    assert _get(archives, _digest()) == _DATA
    assert [path.name for path in tmp_path.iterdir()] == [_digest()]


def test_bytes_of_another_hash_are_refused_and_forgotten(tmp_path: Path) -> None:
    archives = Archives(tmp_path, set)
    with pytest.raises(InvalidArgument, match="has the hash"):
        archives.put("0" * 64, 3, 0, b"abc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("digest", "total", "offset", "data", "told"),
    [
        ("../x", 3, 0, b"abc", "is no SHA-256"),
        ("0" * 64, 1 << 40, 0, b"abc", "are allowed"),
        ("0" * 64, 0, 0, b"", "are allowed"),
        ("0" * 64, 3, 2, b"abc", "is none of code"),
        ("0" * 64, 3, -1, b"abc", "is none of code"),
        ("0" * 64, 1 << 22, 0, b"x" * (PART_BYTES + 1), "is none of code"),
    ],
)
def test_odd_parts(tmp_path: Path, digest: str, total: int, offset: int, data: bytes, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        Archives(tmp_path, set).put(digest, total, offset, data)


def test_what_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not kept here") as refused:
        Archives(tmp_path, set).get("0" * 64, 0)
    assert "strata run --sync" in refused.value.hint


def test_the_oldest_go_first_but_none_that_a_task_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 2)
    needed: set[str] = set()
    archives = Archives(tmp_path, lambda: needed)
    digests = []
    for age in range(4):
        digests.append(_put(archives, b"%d" % age))
        os.utime(tmp_path / digests[-1], (1_000 + age, 1_000 + age))
        needed = {digests[0]}
    old = tmp_path / f"{'1' * 64}.part"
    old.touch()
    os.utime(old, (1, 1))
    newest = _put(archives, b"newest")
    assert {path.name for path in tmp_path.iterdir()} == {digests[0], digests[3], newest}
