"""A CheckpointManager that is told nothing belongs to the rank that its process is, as the runtime above says."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from strata.ambient import ambient
from strata.checkpoint import CheckpointManager, SaveHandle
from strata.checkpoint.commit import CommitCoordinator
from strata.checkpoint.fork import Forking
from strata.checkpoint.spreading import Exchange
from strata.errors import InvalidConfig
from strata.storage.base import ObjectStore
from tests.support.thread_commit import ThreadCommit


class _Rank:
    """One of two ranks that are threads of this process; notes what it is asked."""

    def __init__(self, rank: int, decider: ThreadCommit, meeting: threading.Barrier, steps: list[int]) -> None:
        self._rank = rank
        self._decider = decider
        self._meeting = meeting
        self._steps = steps
        self.seen: list[str] = []

    @property
    def place(self) -> tuple[int, int, str | None, str | None]:
        return self._rank, 2, f"task-{self._rank}", "task"

    @property
    def forking(self) -> Forking | None:
        return None

    @property
    def scrub_mb_s(self) -> float:
        return 0.0

    @property
    def exchange(self) -> Exchange | None:
        return None

    def decider(self, store: ObjectStore, deadline_s: float) -> CommitCoordinator | None:
        return self._decider

    def agree(self, step: int) -> Sequence[int]:
        self._steps[self._rank] = step
        self._meeting.wait(30)
        found = list(self._steps)
        self._meeting.wait(30)
        return found

    @contextlib.contextmanager
    def section(self, name: str) -> Iterator[None]:
        self.seen.append(f"{name} begins")
        yield
        self.seen.append(f"{name} ends")

    def before_vote(self, step: int) -> None:
        self.seen.append(f"vote {step}")


@pytest.fixture
def ranks() -> Iterator[list[_Rank]]:
    decider, meeting, steps = ThreadCommit(ranks=(0, 1)), threading.Barrier(2), [0, 0]
    yield [_Rank(rank, decider, meeting, steps) for rank in range(2)]
    ambient.owner = None


def _managers(path: Path, ranks: list[_Rank]) -> list[CheckpointManager]:
    managers = []
    for rank in ranks:
        ambient.owner = [rank].pop  # asked once, by the manager that is made next
        managers.append(CheckpointManager(path))
    return managers


def test_all_ranks_save_one_checkpoint_and_resume_from_one(tmp_path: Path, ranks: list[_Rank]) -> None:
    managers = _managers(tmp_path, ranks)
    for step in (100, 200):
        handles = [each.save_async({"x": np.full(3, rank)}, step=step) for rank, each in enumerate(managers)]
        for handle in handles:
            handle.result(30)
    # Rank 1's part of the newest one is damaged: rank 0 must go back with it, though its own part is good.
    [damaged] = tmp_path.glob("step-000000000200/*/rank-00001.safetensors")
    damaged.write_bytes(b"\xff" * damaged.stat().st_size)
    found: dict[int, int] = {}

    def recover(rank: int) -> None:
        recovery = managers[rank].recover()
        assert recovery is not None
        assert recovery.state["x"].tolist() == [rank] * 3
        found[rank] = recovery.info.step

    threads = [threading.Thread(target=recover, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {0: 100, 1: 100}
    for manager in managers:
        manager.close()


def test_what_belongs_to_a_step_is_made_safe_before_the_vote(tmp_path: Path, ranks: list[_Rank]) -> None:
    ambient.owner = lambda: ranks[0]
    with CheckpointManager(tmp_path, rank=0, world_size=1) as alone:
        alone.save(b"state", step=1)
        alone.load(1)
    assert ranks[0].seen == ["checkpoint begins", "vote 1", "checkpoint ends", "recovery begins", "recovery ends"]


def test_ranks_given_by_hand_win(tmp_path: Path, ranks: list[_Rank]) -> None:
    ambient.owner = lambda: ranks[1]
    with CheckpointManager(tmp_path, rank=0, world_size=1) as alone:
        assert alone.save(b"state", step=1).worker_id is None


def test_a_rank_that_has_not_joined_its_task_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_TASK_ID", "task-7")
    monkeypatch.setenv("STRATA_WORLD_SIZE", "2")
    with pytest.raises(InvalidConfig, match="task-7") as refused:
        CheckpointManager(tmp_path)
    assert "strata.init()" in refused.value.hint
    with CheckpointManager(tmp_path, rank=0, world_size=1) as alone:
        alone.save(b"state", step=1)


def test_async_save_returns_before_the_checkpoint_exists(tmp_path: Path) -> None:
    gate = threading.Event()
    with CheckpointManager(tmp_path, async_save=True, before_vote=lambda _: _wait(gate)) as checkpoints:
        weights = np.zeros(8)
        handle: SaveHandle = checkpoints.save({"w": weights}, step=1)
        weights += 1  # its own already
        assert not handle.done
        assert checkpoints.get_latest() is None
        gate.set()
        info = handle.result(30)
        assert info is not None
        assert info.step == 1
        assert checkpoints.load()["w"].tolist() == [0.0] * 8


def test_bytes_are_saved_behind_the_loop_without_a_copy(tmp_path: Path) -> None:
    """More bytes than the staging memory may hold: a copy would be refused."""
    state = bytes(1_000_000)
    with CheckpointManager(tmp_path, memory_budget_bytes=1_000) as checkpoints:
        checkpoints.save_async(state, step=1).result(30)
        checkpoints.save_async({"model": state}, step=2).result(30)
        assert checkpoints.load(1) == state


def test_saves_of_bytes_do_not_pile_up(tmp_path: Path) -> None:
    gate = threading.Event()
    with CheckpointManager(tmp_path, before_vote=lambda _: _wait(gate), on_busy="skip") as checkpoints:
        handles = [checkpoints.save_async(b"state %d" % step, step=step) for step in range(4)]
        gate.set()
        assert [handle.result(30) is not None for handle in handles] == [True, True, False, False]


def _wait(gate: threading.Event) -> None:
    assert gate.wait(30)
