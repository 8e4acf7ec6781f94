"""CheckpointManager as a training script sees it, on a real folder."""

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager, SaveAttempt, Sharded, SoloCommit
from strata.checkpoint.layout import commit_key
from strata.clock import ManualClock
from strata.errors import (
    Busy,
    CheckpointAborted,
    CheckpointNotFound,
    Conflict,
    CoordinatorUnavailable,
    DeadlineExceeded,
    InvalidArgument,
    StorageFull,
)
from strata.storage.local import LocalStore
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from tests.support.thread_commit import ThreadCommit


def _state(seed: int = 0, rows: int = 1000) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "model": {"w": rng.normal(size=(rows, 64)).astype(np.float32), "b": rng.normal(size=64)},
        "optimizer": {"state": {0: {"step": seed, "m": rng.normal(size=(8, 8))}}, "lr": 0.1},
    }


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(np.array_equal(left, right)) if isinstance(left, np.ndarray) else bool(left == right)


class _Slow(LocalStore):
    """A store whose data waits for a gate, or for a full disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.gate = threading.Event()
        self.fail = False

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        self.gate.wait(60)
        if self.fail:
            raise StorageFull("no space left for tests")
        super().put_stream(key, chunks, size=size)


def _slow_manager(tmp_path: Path, **options: Any) -> tuple[CheckpointManager, _Slow]:
    store = _Slow(tmp_path)
    return CheckpointManager(store, **options), store


def test_what_was_saved_comes_back_and_a_new_process_finds_it(tmp_path: Path) -> None:
    with CheckpointManager(path=str(tmp_path), keep_count=5) as manager:
        info = manager.save(_state(1), step=5000, epoch=2, metadata={"loss": 0.5}, data_state={"cursor": 7})
        assert (info.step, info.epoch, info.status) == (5000, 2, CheckpointStatus.COMPLETED)
        assert info.path == f"{tmp_path}/step-000000005000"
        assert info.duration_s is not None
        assert info.throughput is not None
        assert info.metadata == {"loss": 0.5}
    fresh = CheckpointManager(tmp_path)
    latest = fresh.get_latest()
    assert latest is not None
    assert (latest.step, latest.epoch, latest.size_bytes) == (5000, 2, info.size_bytes)
    assert _same(fresh.load(5000), _state(1))
    assert _same(fresh.load(), _state(1))
    recovery = fresh.recover()
    assert recovery is not None
    assert (recovery.info.step, recovery.data_state) == (5000, {"cursor": 7})


def test_bytes_are_a_state_too(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        manager.save(b"model state bytes", step=1, epoch=0)
        assert manager.load(1) == b"model state bytes"
        manager.save(b"", step=2)
        assert manager.load(2) == b""


def test_an_empty_place_has_nothing_and_is_not_created_by_looking(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "none")
    assert manager.get_latest() is None
    assert manager.list() == []
    assert manager.recover() is None
    for call in (manager.load, lambda: manager.load(3), lambda: manager.pin(3), lambda: manager.remove(3)):
        with pytest.raises(CheckpointNotFound):
            call()
    assert not (tmp_path / "none").exists()


def test_the_state_may_change_as_soon_as_save_async_returns(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        state = _state(3, rows=20_000)
        before = {name: array.copy() for name, array in state["model"].items()}
        handle = manager.save_async(state, step=1)
        for array in state["model"].values():
            array.fill(-1)
        assert handle.staged
        info = handle.result(30)
        assert info is not None
        assert handle.progress.phase == "completed"
        assert handle.progress.bytes_done == handle.progress.bytes_total == info.size_bytes
        for name, array in manager.load(1)["model"].items():
            assert array.tobytes() == before[name].tobytes()


def test_retention_keeps_the_newest_every_nth_and_the_pinned(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path, keep_count=2, keep_every=400) as manager:
        for step in range(100, 1001, 100):
            manager.save(b"x", step=step)
            if step == 300:
                manager.pin(300)
        manager.wait()
        assert [info.step for info in manager.list()] == [1000, 900, 800, 400, 300]
        assert [info.pinned for info in manager.list()] == [False, False, False, False, True]
        with pytest.raises(InvalidArgument, match="pinned"):
            manager.remove(300)
        manager.unpin(300)
        manager.unpin(300)
        manager.remove(300)
        for change in (manager.pin, manager.unpin):
            with pytest.raises(CheckpointNotFound, match="step 300"):
                change(300)
        assert not (tmp_path / "step-000000000300").exists()


def test_a_step_saved_below_newer_ones_is_not_removed_at_once(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path, keep_count=1) as manager:
        manager.save(b"new", step=1000)
        manager.save(b"old", step=10)
        manager.wait()
        assert manager.load(10) == b"old"


def test_a_committed_step_is_replaced_only_on_request(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        manager.save(b"first", step=1)
        with pytest.raises(Conflict, match="committed already") as caught:
            manager.save(b"second", step=1)
        assert "overwrite=True" in caught.value.hint
        assert manager.load(1) == b"first"
        manager.save(b"second", step=1, overwrite=True)
        assert manager.load(1) == b"second"


def test_a_full_staging_memory_blocks_skips_or_raises(tmp_path: Path) -> None:
    for policy in ("skip", "error"):
        manager, store = _slow_manager(tmp_path / policy, on_busy=policy, staging_buffers=1)
        first = manager.save_async({"x": np.ones(10)}, step=1)
        with pytest.raises(DeadlineExceeded, match="step 1 is still"):
            first.result(0.01)
        if policy == "skip":
            skipped = manager.save_async({"x": np.ones(10)}, step=2)
            assert (skipped.done, skipped.result(), skipped.progress.phase) == (True, None, "skipped")
        else:
            with pytest.raises(Busy):
                manager.save_async({"x": np.ones(10)}, step=2)
        store.gate.set()
        manager.close()
        assert [info.step for info in manager.list()] == [1]


def test_a_failed_background_save_is_raised_at_the_next_call(tmp_path: Path) -> None:
    seen: list[CheckpointInfo] = []
    manager, store = _slow_manager(tmp_path, observer=seen.append)
    store.fail = True
    store.gate.set()
    manager.save_async(b"x", step=1).join()
    with pytest.raises(StorageFull):
        manager.save_async(b"x", step=2)
    manager.check()  # told once
    store.fail = False
    manager.save(b"x", step=3)
    manager.close()
    assert [(info.step, str(info.status)) for info in seen] == [
        (1, "in_progress"),
        (1, "failed"),
        (3, "in_progress"),
        (3, "completed"),
    ]
    assert "no space left" in seen[1].reason
    assert [info.step for info in manager.list()] == [3]


def test_a_failed_save_can_be_only_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager, store = _slow_manager(tmp_path, on_error="warn")
    store.fail = True
    store.gate.set()
    manager.save_async(b"x", step=1)
    with caplog.at_level(logging.ERROR):
        manager.close()
    assert "the save of step 1 failed: no space left" in caplog.text


def test_an_observer_that_fails_does_not_fail_the_save(tmp_path: Path) -> None:
    def broken(_: CheckpointInfo) -> None:
        raise RuntimeError("dashboard is down")

    with CheckpointManager(tmp_path, observer=broken) as manager:
        assert manager.save(b"x", step=1).step == 1


def test_a_commit_that_cannot_be_announced_is_still_a_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Unreachable(SoloCommit):
        def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
            raise CoordinatorUnavailable("the coordinator is gone")

    with CheckpointManager(tmp_path, coordinator=Unreachable()) as manager:
        assert manager.save(b"x", step=1).status is CheckpointStatus.COMPLETED
        assert manager.load() == b"x"
    assert "step 1 is committed, but the coordinator was not told" in caplog.text


def test_only_some_arrays_or_into_existing_ones(tmp_path: Path) -> None:
    state = _state(2)
    with CheckpointManager(tmp_path) as manager:
        manager.save(state, step=1)
        assert list(manager.load(1, names=["model"])) == ["model/b", "model/w"]
        assert list(manager.load(1, names=["*/b"])) == ["model/b"]
        assert np.array_equal(manager.load(1, names=["model/b"])["model/b"], state["model"]["b"])
        with pytest.raises(CheckpointNotFound, match="nope"):
            manager.load(1, names=["nope"])
        target = np.zeros((1000, 64), dtype=np.float32)
        loaded = manager.load(1, into={"model/w": target})
        assert loaded["model"]["w"] is target
        assert np.array_equal(target, state["model"]["w"])
        with pytest.raises(InvalidArgument, match=r"model/w has shape \(1000, 64\)"):
            manager.load(1, into={"model/w": np.zeros((64, 1000), dtype=np.float32)})
        with pytest.raises(CheckpointNotFound, match=r"no array named \['w'\], which was to be filled"):
            manager.load(into={"w": target})


def test_steps_are_counted_by_any_library(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        saved = manager.save(b"x", step=np.int64(3), epoch=np.uint8(1))  # type: ignore[arg-type]  # as loops count
        assert (saved.step, saved.epoch, manager.load(np.int32(3))) == (3, 1, b"x")  # type: ignore[arg-type]  # so


def test_progress_of_load_and_verify(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        info = manager.save({"x": np.zeros(5 << 20)}, step=1)
        seen: list[tuple[int, int]] = []
        assert manager.verify(1, progress=lambda done, total: seen.append((done, total))).verified is True
        assert seen[-1] == (info.size_bytes, info.size_bytes)
        assert len(seen) == 6
        assert manager.show(1).verified is True
        seen.clear()
        manager.load(1, progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (40 << 20, 40 << 20)


def _save_on_ranks(path: Path, states: list[Any], *, step: int = 1) -> list[CheckpointInfo | BaseException]:
    """Ranks as threads of one process, each with its own manager."""
    coordinator = ThreadCommit(tuple(range(len(states))), deadline_s=10)
    outcomes: list[CheckpointInfo | BaseException] = [RuntimeError("did not run")] * len(states)

    def run(rank: int) -> None:
        try:
            with CheckpointManager(path, coordinator=coordinator, rank=rank, world_size=len(states)) as manager:
                outcomes[rank] = manager.save(states[rank], step=step, data_state={"rank": rank})
        except BaseException as error:
            outcomes[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(states))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_a_checkpoint_of_four_ranks_loads_on_any_number(tmp_path: Path) -> None:
    whole = np.arange(10 * 7, dtype=np.float32).reshape(10, 7)
    parts = np.array_split(whole, 4)
    starts = np.cumsum([0, *(len(part) for part in parts)])
    states = [
        {"w": Sharded(part, whole.shape, (int(start), 0)), "lr": 0.1, "rank": rank}
        for rank, (part, start) in enumerate(zip(parts, starts[:-1], strict=True))
    ]
    outcomes = _save_on_ranks(tmp_path, states)
    assert {info.id for info in outcomes if isinstance(info, CheckpointInfo)} == {outcomes[0].id}  # type: ignore[union-attr]  # an error would have no id
    manager = CheckpointManager(tmp_path)
    for world_size in (1, 2, 3, 4, 5, 8):
        loaded = [manager.load(1, rank=rank, world_size=world_size) for rank in range(world_size)]
        assert np.array_equal(np.concatenate([state["w"] for state in loaded]), whole)
        assert loaded[-1]["rank"] == (world_size - 1) % 4
    assert np.array_equal(manager.load(1)["w"], whole)


def test_one_rank_that_cannot_save_aborts_all_by_name(tmp_path: Path) -> None:
    outcomes = _save_on_ranks(tmp_path, [{"x": np.ones(4)}, {"x": np.ones(4)}])
    assert all(isinstance(outcome, CheckpointInfo) for outcome in outcomes)
    coordinator = ThreadCommit((0, 1), deadline_s=0.2)
    with (
        pytest.raises(CheckpointAborted) as caught,
        CheckpointManager(tmp_path, coordinator=coordinator, rank=0, world_size=2) as manager,
    ):
        manager.save(b"alone", step=2)
    assert caught.value.missing == (1,)
    assert CheckpointManager(tmp_path).get_latest().step == 1  # type: ignore[union-attr]  # it was saved above


def test_ranks_agree_on_the_newest_step_all_of_them_can_read(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        _save_on_ranks(tmp_path, [{"x": np.full(4, step)}, {"x": np.full(4, -step)}], step=step)
    victim = next((tmp_path / "step-000000000003").glob("a-*/rank-00001.safetensors"))
    data = bytearray(victim.read_bytes())
    data[-1] ^= 1
    victim.write_bytes(data)
    gate, steps, found = threading.Barrier(2), [0, 0], [0, 0]

    def resume(rank: int) -> None:
        def agree(step: int) -> list[int]:
            steps[rank] = step
            gate.wait(60)
            seen = list(steps)
            gate.wait(60)
            return seen

        manager = CheckpointManager(tmp_path, coordinator=ThreadCommit((0, 1)), rank=rank, world_size=2)
        recovery = manager.recover(agree)
        assert recovery is not None
        assert recovery.data_state == {"rank": rank}
        found[rank] = recovery.info.step

    threads = [threading.Thread(target=resume, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2, 2]


def test_dead_attempts_are_collected_after_their_time(tmp_path: Path) -> None:
    clock = ManualClock(wall=4e9)  # files of today are old for it
    dead = tmp_path / "step-000000000007" / "a-0-dead"
    dead.mkdir(parents=True)
    (dead / "rank-00000.safetensors").write_bytes(b"half")
    hidden = tmp_path / "step-000000000008" / "a-0-hidden"
    hidden.mkdir(parents=True)
    (hidden / ".rank-00000.safetensors.0badcafe.part").write_bytes(b"half")
    with CheckpointManager(tmp_path, clock=clock, deadline_s=10) as manager:
        manager.save(b"x", step=9)
        manager.wait()
        assert not dead.parent.exists()
        assert hidden.exists()  # its age is not known yet: first seen now
        clock.advance(21)
        manager.save(b"y", step=10)
        manager.wait()
        assert not hidden.parent.exists()
        assert manager.load() == b"y"


def test_equal_bytes_at_another_step_are_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with CheckpointManager(tmp_path) as manager, caplog.at_level(logging.WARNING):
        manager.save({"w": np.ones(100)}, step=1)
        manager.save({"w": np.ones(100)}, step=2)
        manager.save({"best": 0.5}, step=3)
        manager.save({"best": 0.4}, step=4)  # no array, no bytes: nothing can be said of them
    assert "step 2 holds exactly the bytes of step 1" in caplog.text
    assert "step 4" not in caplog.text


def test_the_store_is_asked_once_whether_it_keeps_create_once(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        assert manager.conditional_writes is None
        manager.save(b"x", step=1)
        assert manager.conditional_writes is True
        assert LocalStore(tmp_path).get(commit_key(1))


def test_the_best_by_a_metric_stays(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path, keep_count=1, keep_best=("val/loss", "min")) as manager:
        for step, loss in ((1, 0.9), (2, 0.1), (3, 0.5), (4, None)):
            metrics = {} if loss is None else {"metrics": {"val/loss": loss}}
            manager.save({"w": np.full(4, step)}, step, metadata=metrics)
            manager.wait()
        assert [info.step for info in manager.list()] == [4, 2]
        best = manager.get_best()
        assert best is not None
        assert manager.load(best.step)["w"].tolist() == [2] * 4
    with CheckpointManager(tmp_path) as plain, pytest.raises(InvalidArgument, match="nothing says what is best"):
        plain.get_best()
