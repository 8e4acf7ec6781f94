"""One suite over every store: whatever a checkpoint relies on, each implementation must do."""

import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strata.errors import InvalidArgument, StorageConflict, StorageNotFound
from strata.storage.base import ObjectStore, honours_create
from strata.storage.local import LocalStore
from strata.storage.memory import MemoryStore
from strata.storage.uri import open_store
from tests.support.azurite import ACCOUNT, azurite, find_azurite
from tests.support.seaweed import seaweed


def _local(folder: Path) -> ObjectStore:
    return LocalStore(folder / "store")


def _memory(_: Path) -> ObjectStore:
    return MemoryStore()


def _s3(_: Path) -> ObjectStore:
    server = seaweed()
    server.make_bucket("contract")
    return open_store(f"s3://contract/{secrets.token_hex(6)}", server.options())


def _azure(_: Path) -> ObjectStore:
    server = azurite()
    server.make_container("contract")
    return open_store(f"az://contract/{secrets.token_hex(6)}", server.options())


_NO_AZURITE = pytest.mark.skipif(find_azurite() is None, reason="Azurite is not installed (make test-azure)")
_STORES = [_local, _memory, _s3, pytest.param(_azure, marks=_NO_AZURITE)]


@pytest.fixture(params=_STORES, ids=["local", "memory", "s3", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    make: Callable[[Path], ObjectStore] = request.param
    return make(tmp_path)


def _chunks(count: int, size: int) -> Iterator[memoryview]:
    for index in range(count):
        yield memoryview(bytes([index % 251]) * size)


def test_what_was_put_is_read_back_whole_and_in_ranges(store: ObjectStore) -> None:
    store.put("a/b/one.json", b"0123456789")
    assert store.get("a/b/one.json") == b"0123456789"
    first, second = bytearray(3), bytearray(4)
    assert store.read_into("a/b/one.json", 2, [memoryview(first), memoryview(second)]) == 7
    assert bytes(first + second) == b"2345678"


def test_a_read_past_the_end_says_how_much_there_was(store: ObjectStore) -> None:
    store.put("short", b"abc")
    buffer = bytearray(8)
    assert store.read_into("short", 1, [memoryview(buffer)]) == 2
    assert store.read_into("short", 3, [memoryview(buffer)]) == 0
    assert store.read_into("short", 0, []) == 0


def test_put_replaces_but_create_never_does(store: ObjectStore) -> None:
    store.put("k", b"1")
    store.put("k", b"2")
    with pytest.raises(StorageConflict, match="exists already"):
        store.put("k", b"3", create=True)
    assert store.get("k") == b"2"


def test_exactly_one_of_many_racing_creators_wins(store: ObjectStore) -> None:
    gate = threading.Barrier(8)
    wins: list[int] = []

    def create(index: int) -> None:
        gate.wait()
        try:
            store.put("race", str(index).encode(), create=True)
            wins.append(index)
        except StorageConflict:
            pass

    threads = [threading.Thread(target=create, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(index).encode() for index in wins] == [store.get("race")]


def test_the_probe_recognises_a_store_that_honours_create(store: ObjectStore) -> None:
    assert honours_create(store, "probe", b"x")
    assert honours_create(store, "probe", b"y")
    assert store.get("probe") == b"x"


def test_a_stream_becomes_one_object(store: ObjectStore) -> None:
    store.put_stream("s/data", _chunks(9, 100_000))
    assert store.get("s/data") == b"".join(bytes(chunk) for chunk in _chunks(9, 100_000))
    store.put_stream("s/empty", iter(()))
    assert store.get("s/empty") == b""


def test_a_stream_that_fails_leaves_nothing(store: ObjectStore) -> None:
    def broken() -> Iterator[memoryview]:
        yield memoryview(b"x" * 1000)
        raise KeyError("the tensor vanished")

    with pytest.raises(KeyError, match="vanished"):
        store.put_stream("s/broken", broken())
    with pytest.raises(StorageNotFound):
        store.get("s/broken")
    assert store.list("s/").objects == ()


def test_missing_objects_are_not_found_and_their_deletion_is_fine(store: ObjectStore) -> None:
    with pytest.raises(StorageNotFound, match="nothing/here"):
        store.get("nothing/here")
    with pytest.raises(StorageNotFound):
        store.read_into("nothing/here", 0, [memoryview(bytearray(1))])
    store.delete("nothing/here")
    store.delete("nothing/")


def test_list_shows_one_level_sorted(store: ObjectStore) -> None:
    for key in ("b", "a", "dir/x", "dir/deep/y", "dir2/z"):
        store.put(key, b"123")
    top = store.list()
    assert [found.key for found in top.objects] == ["a", "b"]
    assert top.folders == ("dir/", "dir2/")
    inner = store.list("dir/")
    assert [(found.key, found.size) for found in inner.objects] == [("dir/x", 3)]
    assert inner.folders == ("dir/deep/",)
    assert inner.objects[0].modified_at > 1_600_000_000
    assert store.list("absent/") == store.list("also/absent/")


def test_delete_takes_one_object_or_a_whole_folder(store: ObjectStore) -> None:
    for key in ("d/1", "d/e/2", "d/e/3", "d2/4"):
        store.put(key, b"x")
    store.delete("d/1")
    assert store.list("d/").objects == ()
    store.delete("d/")
    assert store.list("d/").objects == store.list("d/e/").objects == ()
    assert store.get("d2/4") == b"x"


@pytest.mark.parametrize("key", ["", "/abs", "a//b", "../up", "a/../../b", "a\\b", "nul\0"])
def test_keys_that_leave_the_root_are_refused(store: ObjectStore, key: str) -> None:
    with pytest.raises(InvalidArgument, match="not a valid storage key"):
        store.put(key, b"x")
