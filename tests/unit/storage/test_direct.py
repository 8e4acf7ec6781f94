"""Writing past the page cache: any cut of the bytes gives the same file, trouble in a thread comes out in the call."""

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from strata.errors import StorageError
from strata.storage.direct import BLOCK_BYTES
from strata.storage.local import LocalStore

_SIZES = (BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES - 1, 3 * BLOCK_BYTES + 4096, 4 * BLOCK_BYTES + 12_345)


def _bytes(size: int) -> memoryview:
    """Page-aligned, as staging memory is, and no two pages alike."""
    memory = mmap.mmap(-1, size)
    memory.write(os.urandom(BLOCK_BYTES)[: min(size, BLOCK_BYTES)])
    for start in range(BLOCK_BYTES, size, BLOCK_BYTES):
        memory[start : start + 8] = start.to_bytes(8, "little")[: size - start]
    memory[-1] = 7
    return memoryview(memory)


def _cut(data: memoryview, random: Random) -> Iterator[memoryview]:
    """Mostly whole pages, sometimes odd ends, so that both ways of writing follow each other."""
    while len(data):
        size = random.choice((4096, BLOCK_BYTES, BLOCK_BYTES // 2, random.randint(1, BLOCK_BYTES)))
        yield data[:size]
        data = data[size:]


@pytest.mark.parametrize("size", _SIZES)
def test_every_cut_gives_the_same_file(tmp_path: Path, size: int) -> None:
    data = _bytes(size)
    store = LocalStore(tmp_path)
    store.put_stream("object", _cut(data, Random(size)))
    assert (tmp_path / "object").read_bytes() == data
    store.put_stream("object", iter([data[:1], data[1:]]))  # nothing lies on a page any more
    assert (tmp_path / "object").read_bytes() == data
    assert [entry.name for entry in tmp_path.iterdir()] == ["object"]


@pytest.mark.parametrize("refused", ["flag", "write"])
def test_a_file_system_without_direct_writes_gets_ordinary_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    data = _bytes(2 * BLOCK_BYTES + 5)
    pwrite, control = os.pwrite, fcntl.fcntl
    seen: list[str] = []

    def picky_write(descriptor: int, *arguments: Any) -> int:
        if control(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            seen.append("write")
            raise OSError(errno.EINVAL, "not with this alignment")
        return pwrite(descriptor, *arguments)

    def picky_control(descriptor: int, command: int, value: int = 0) -> int:
        if command == fcntl.F_SETFL and value & os.O_DIRECT:
            seen.append("flag")
            raise OSError(errno.EINVAL, "no direct writes here")
        return control(descriptor, command, value)

    if refused == "flag":
        monkeypatch.setattr(fcntl, "fcntl", picky_control)
    else:
        monkeypatch.setattr(os, "pwrite", picky_write)
    LocalStore(tmp_path).put_stream("object", _cut(data, Random(1)))
    assert seen
    assert (tmp_path / "object").read_bytes() == data


def test_a_failed_write_ends_the_call_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite

    def broken(descriptor: int, data: memoryview, position: int) -> int:
        if position >= 2 * BLOCK_BYTES:
            raise OSError(errno.EIO, "bad sector")
        return pwrite(descriptor, data, position)

    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(StorageError, match="bad sector"):
        LocalStore(tmp_path).put_stream("object", _cut(_bytes(6 * BLOCK_BYTES), Random(2)))
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_fails_ends_the_call_and_leaves_nothing(tmp_path: Path) -> None:
    def source() -> Iterator[memoryview]:
        yield from _cut(_bytes(3 * BLOCK_BYTES), Random(3))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        LocalStore(tmp_path).put_stream("object", source())
    assert list(tmp_path.iterdir()) == []
