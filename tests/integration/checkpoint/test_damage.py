"""Bits flip, files are cut, ranks vanish, disks fill: detected, named, survived, nothing is deleted."""

import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager
from strata.errors import CorruptCheckpoint, StorageFull
from tests.support.thread_commit import ThreadCommit

_ROWS = 1_500_000  # 12 MB of float64 per rank: two chunks


def _save(folder: Path, step: int) -> None:
    """Two ranks as threads; `head` lies in the first chunk, `tail` in the last."""
    coordinator = ThreadCommit((0, 1))

    def run(rank: int) -> None:
        with CheckpointManager(folder, coordinator=coordinator, rank=rank, world_size=2) as manager:
            state = {"head": np.full(1000, step * 1.0), "tail": np.full(_ROWS, step + rank * 0.5)}
            manager.save(state, step=step, data_state={"cursor": step})

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pristine") / "ckpt"
    for step in (1, 2):
        _save(folder, step)
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy to damage, by hard links: each test replaces the file it damages."""
    subprocess.run(["cp", "-al", str(pristine), str(tmp_path / "ckpt")], check=True)
    return tmp_path / "ckpt"


def _find(folder: Path, name: str) -> Path:
    return next((folder / "step-000000000002").rglob(name))


def _rewrite(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0b100
    _rewrite(path, bytes(data))


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def _manager(folder: Path, rank: int = 0) -> CheckpointManager:
    return CheckpointManager(folder, coordinator=ThreadCommit((0, 1)), rank=rank, world_size=2)


_DATA, _MANIFEST = "rank-00001.safetensors", "rank-00001.json"
_DAMAGE: list[tuple[str, Callable[[Path], None], str]] = [
    ("first byte of the header", lambda f: _flip(_find(f, _DATA), 0), "rank 1, chunk 0"),
    ("an array in the first chunk", lambda f: _flip(_find(f, _DATA), 1000), "rank 1, chunk 0 (head, tail)"),
    ("an array in the last chunk", lambda f: _flip(_find(f, _DATA), -1), "rank 1, chunk 1 (tail)"),
    ("the manifest", lambda f: _flip(_find(f, _MANIFEST), 40), "rank 1: the manifest does not match the hash"),
    ("the data is cut", lambda f: _rewrite(_find(f, _DATA), _find(f, _DATA).read_bytes()[:-5]), "is cut short"),
    ("the data is empty", lambda f: _rewrite(_find(f, _DATA), b""), "is cut short: 0 of"),
    ("the data is gone", lambda f: _find(f, _DATA).unlink(), "is missing"),
    ("the manifest is gone", lambda f: _find(f, _MANIFEST).unlink(), "rank 1: the manifest is missing"),
]


@pytest.mark.parametrize(("damage", "named"), [case[1:] for case in _DAMAGE], ids=[case[0] for case in _DAMAGE])
def test_damage_is_named_and_the_checkpoint_before_is_used(
    folder: Path, damage: Callable[[Path], None], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    damage(folder)
    before = _files(folder)
    manager = _manager(folder, rank=1)
    with pytest.raises(CorruptCheckpoint) as caught:
        manager.load(2)
    assert "step 2, rank 1" in caught.value.message
    assert named in caught.value.message
    with pytest.raises(CorruptCheckpoint, match="step 2, rank 1"):
        manager.verify(2)
    with caplog.at_level(logging.WARNING):
        recovery = manager.recover()
    assert recovery is not None
    assert (recovery.info.step, recovery.data_state) == (1, {"cursor": 1})
    assert np.array_equal(recovery.state["tail"], np.full(_ROWS, 1.5))
    assert named in caplog.text
    assert manager.show(2).verified is False
    assert _files(folder) == before  # a suspect is never deleted


def test_a_flipped_bit_in_commit_json_uncommits_the_step(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    _flip(folder / "step-000000000002" / "COMMIT.json", 30)
    manager = _manager(folder)
    with pytest.raises(CorruptCheckpoint, match=r"COMMIT\.json of step 2 does not match its own hash"):
        manager.load(2)
    latest = manager.get_latest()
    assert latest is not None
    assert latest.step == 1
    assert "COMMIT.json of step 2" in caplog.text


@pytest.mark.parametrize("name", [_DATA, _MANIFEST])
def test_get_latest_passes_over_a_step_with_a_rank_missing(folder: Path, name: str) -> None:
    _find(folder, name).unlink()
    latest = _manager(folder).get_latest()
    assert latest is not None
    assert latest.step == 1


def test_get_latest_can_check_every_byte(folder: Path) -> None:
    _flip(_find(folder, _DATA), -1)
    shallow, deep = _manager(folder).get_latest(), _manager(folder).get_latest(deep=True)
    assert shallow is not None
    assert deep is not None
    assert (shallow.step, deep.step, deep.verified) == (2, 1, True)


def test_when_all_are_damaged_nobody_starts_from_scratch_by_accident(folder: Path) -> None:
    for path in folder.rglob(_DATA):
        _flip(path, -1)
    with pytest.raises(CorruptCheckpoint, match=r"no checkpoint is good: .*step 2.*step 1"):
        _manager(folder, rank=1).load()


def test_unverified_loads_are_possible_on_request(folder: Path) -> None:
    _flip(_find(folder, _DATA), -1)
    manager = CheckpointManager(folder, coordinator=ThreadCommit((0, 1)), rank=1, world_size=2, verify_on_load=False)
    assert manager.load(2)["tail"].shape == (_ROWS,)


def test_a_damaged_step_can_be_saved_again_by_the_one_who_found_it(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        manager.save({"x": np.ones(10)}, step=1)
        manager.save({"x": np.full(10, 2.0)}, step=2)
        _flip(_find(tmp_path, "rank-00000.safetensors"), -1)
        assert manager.load()["x"][0] == 1
        manager.save({"x": np.full(10, 2.0)}, step=2)
        assert manager.verify(2).verified
        assert manager.load()["x"][0] == 2


def test_retention_never_removes_the_newest_verified_one(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path, keep_count=1) as manager:
        manager.save(b"one", step=1)
        manager.verify(1)
        manager.save(b"two", step=2)
        manager.save(b"three", step=3)
        manager.wait()
        assert [info.step for info in manager.list()] == [3, 1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 24 MiB; mounting needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_one_save_and_nothing_else(small_disk: Path) -> None:
    with CheckpointManager(small_disk / "ckpt", keep_count=1) as manager:
        manager.save({"x": np.ones(1 << 20)}, step=1)  # 8 MiB
        handle = manager.save_async({"x": np.ones(3 << 20)}, step=2)  # 24 MiB: does not fit beside it
        with pytest.raises(StorageFull, match="no space left") as caught:
            handle.result(30)
        assert "keep_count" in caught.value.hint
        assert [info.step for info in manager.list()] == [1]
        assert manager.verify(1).verified
        manager.save({"x": np.full(1 << 20, 3.0)}, step=3)  # the space of the failed one is free again
        assert manager.load()["x"][0] == 3
