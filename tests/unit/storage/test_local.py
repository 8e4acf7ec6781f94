"""LocalStore beyond the contract: what a crash, a full disk and a file system without hard links leave behind."""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strata.errors import StorageConflict, StorageFull
from strata.storage.local import LocalStore


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 2 MiB; mounting needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_objects_are_plain_files(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("step/COMMIT.json", b"{}")
    assert (tmp_path / "step" / "COMMIT.json").read_bytes() == b"{}"
    assert store.uri == str(tmp_path)


def test_leftovers_of_a_crash_are_hidden_and_die_with_their_folder(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("step/data", b"x")
    (tmp_path / "step" / ".data.0badcafe.part").write_bytes(b"half")
    assert [found.key for found in store.list("step/").objects] == ["step/data"]
    store.delete("step/")
    assert not (tmp_path / "step").exists()


@pytest.mark.parametrize("size_mib", [4, 20])  # through the page cache and past it
def test_a_full_disk_is_reported_and_gives_its_space_back(small_disk: Path, size_mib: int) -> None:
    store = LocalStore(small_disk)
    store.put("keep", b"k" * 1000)
    with pytest.raises(StorageFull, match="no space left") as caught:
        store.put_stream("big", (memoryview(bytes(1 << 20)) for _ in range(size_mib)))
    assert "keep_count" in caught.value.hint
    assert [entry.name for entry in small_disk.iterdir()] == ["keep"]
    store.put("after", b"a" * 1000)


def test_a_lost_create_leaves_no_leftovers(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("once", b"1", create=True)
    with pytest.raises(StorageConflict):
        store.put("once", b"2", create=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["once"]


@pytest.mark.parametrize("create", [False, True])
def test_bytes_are_synced_before_their_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    """A power cut cannot be tested here; the order of the system calls that survive one can."""
    calls: list[str] = []

    def recorded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def record(*arguments: Any, **options: Any) -> Any:
            kind = ""
            if name == "fsync":
                kind = " folder" if stat.S_ISDIR(os.fstat(arguments[0]).st_mode) else " file"
            calls.append(name + kind)
            return call(*arguments, **options)

        return record

    for name in ("fsync", "rename", "link"):
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name)))
    store = LocalStore(tmp_path)
    store.put("data", b"x", create=create)
    assert calls == ["fsync file", "link" if create else "rename", "fsync folder"]
    calls.clear()
    store.put_stream("new/deep/data", iter((memoryview(b"x"),)))
    assert calls == ["fsync folder", "fsync folder", "fsync file", "rename", "fsync folder"]


def test_a_relative_folder_keeps_its_meaning_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("ckpt")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    store.put("k", b"v")
    assert (tmp_path / "ckpt" / "k").read_bytes() == b"v"
