"""The local cache: whole files or none, a size limit, and a bucket read through it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strata.data.files.cache import LocalCache
from strata.data.files.listing import BucketFiles
from strata.data.readers import reader_for
from strata.errors import DataError
from strata.storage.memory import MemoryStore

if TYPE_CHECKING:
    from tests.support.datasets import Dataset


def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path)
    calls = []

    def fetch(offset: int, buffer: memoryview) -> int:
        calls.append(offset)
        buffer[:] = b"x" * len(buffer)
        return len(buffer)

    assert cache.get("key", 5, fetch).read_bytes() == b"xxxxx"
    assert cache.get("key", 5, fetch).read_bytes() == b"xxxxx"
    assert calls == [0]


def test_a_broken_copy_leaves_nothing_behind(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path)
    with pytest.raises(DataError, match="ended after 0 of 5 bytes"):
        cache.get("key", 5, lambda offset, buffer: 0)
    assert list((tmp_path / "files").iterdir()) == []


def test_the_longest_unused_goes_first(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, limit_bytes=10)

    def fetch(offset: int, buffer: memoryview) -> int:
        return len(buffer)

    for age, key in enumerate(["a", "b"]):
        os.utime(cache.get(key, 4, fetch), (age, age))
    os.utime(tmp_path / "files" / "a", (5, 5))
    cache.get("c", 4, fetch)
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == ["a", "c"]


def test_a_broken_note_counts_as_none(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path)
    cache.put_note("key", {"a": 1})
    assert cache.note("key") == {"a": 1}
    (tmp_path / "notes" / "key.json").write_text("{")
    assert cache.note("key") is None
    assert cache.note("other") is None


@pytest.mark.parametrize(
    ("uri", "count"),
    [
        ("memory://bucket/set/*.parquet", 4),
        ("memory://bucket/set", 4),
        ("memory://bucket/**/part-[01].parquet", 2),
        ("memory://bucket/set/part-2.parquet", 1),
    ],
)
def test_objects_of_a_bucket_by_glob_prefix_or_name(parquet: "Dataset", tmp_path: Path, uri: str, count: int) -> None:
    root = uri.split("/*")[0].removesuffix("/part-2.parquet")
    store = MemoryStore(root)
    prefix = "" if root.endswith("set") else "set/"
    for path in parquet.folder.glob("*.parquet"):
        store.put(prefix + path.name, path.read_bytes())
    store.put(prefix + "notes.txt", b"not data")
    files = BucketFiles(uri, (".parquet",), LocalCache(tmp_path / "cache"), store)
    refs = files.list()
    assert len(refs) == count
    reader = reader_for("parquet")
    with files.open(refs[0]) as file:
        assert reader.index(refs[0], file).num_rows > 0
    assert files.fetch(refs[0]).stat().st_size == refs[0].size


def test_an_empty_prefix_is_an_error(tmp_path: Path) -> None:
    files = BucketFiles("memory://bucket/set", (".parquet",), LocalCache(tmp_path), MemoryStore("memory://bucket/set"))
    with pytest.raises(DataError, match="no object matches 'memory://bucket/set'"):
        files.list()
