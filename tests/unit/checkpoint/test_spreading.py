"""What all ranks have alike is written and read once; what differs is each rank's own. Real ranks in threads."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata.ambient import ambient
from strata.checkpoint.arrays import Sharded
from strata.checkpoint.codec import encode
from strata.checkpoint.manager import CheckpointManager
from strata.checkpoint.spreading import deal, owners_in, spread
from strata.checkpoint.store_commit import StoreCommit
from strata.storage.uri import open_store
from strata.worker.collective.gang import Gang
from tests.support.ports import free_ports

_RANKS = 3


def _on_ranks(work: Callable[[int, Gang], Any]) -> list[Any]:
    address = ("127.0.0.1", free_ports(1)[0])
    with ThreadPoolExecutor(_RANKS) as threads:
        return list(threads.map(lambda rank: work(rank, Gang(rank, _RANKS, address, b"secret")), range(_RANKS)))


def test_shares_are_balanced_by_size() -> None:
    owners = deal({"a": 100, "b": 60, "c": 50, "d": 10}, 2)
    assert owners == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_only_what_has_the_same_bytes_everywhere_is_common() -> None:
    def work(rank: int, gang: Gang) -> tuple[set[str], dict[str, int]]:
        state = {"same": np.ones(8), "own": np.full(4, rank), "only": {str(rank): np.ones(1)}, "nan": np.array(np.nan)}
        tree, mine = spread(*encode(state), rank, _RANKS, gang)
        return set(mine), owners_in(tree)

    found = _on_ranks(work)
    assert [owners for _, owners in found] == [{"same": 0, "nan": 1}] * _RANKS
    assert [names for names, _ in found] == [{"own", "only/0", "same"}, {"own", "only/1", "nan"}, {"own", "only/2"}]


class _Owner:
    """A rank of a job whose commits go through the store."""

    scrub_mb_s = 0.0
    forking = None

    def __init__(self, rank: int, gang: Gang, path: Path) -> None:
        self.place = (rank, _RANKS, None, None)
        self.exchange = gang
        self._rank, self._path = rank, path

    def decider(self, store: Any, deadline_s: float) -> StoreCommit:
        return StoreCommit(store, rank=self._rank, ranks=tuple(range(_RANKS)), generation=1, deadline_s=deadline_s)

    def agree(self, step: int) -> list[int]:
        return self.exchange.gather(step)

    def section(self, _: str) -> Any:
        return threading.Lock()

    def before_vote(self, step: int) -> None: ...


@pytest.fixture
def owners() -> Any:
    """Each thread is a rank."""
    local = threading.local()
    ambient.owner = lambda: local.owner
    return local


def _state(rank: int) -> dict[str, Any]:
    block = Sharded(np.arange(rank * 2, rank * 2 + 2), (_RANKS * 2,), (rank * 2,))
    return {"weights": {"a": np.arange(1000.0), "b": np.ones(1000)}, "own": np.full(2, rank), "part": block, "n": 3}


def test_a_checkpoint_holds_common_arrays_once_and_every_rank_gets_all(tmp_path: Path, owners: Any) -> None:
    def work(rank: int, gang: Gang) -> tuple[int, Any]:
        owners.owner = _Owner(rank, gang, tmp_path)
        with CheckpointManager(tmp_path) as checkpoints:
            saved = checkpoints.save(_state(rank), 5, share=True)
            found = checkpoints.recover(share=True)
        assert found is not None
        return saved.size_bytes, found.state

    found = _on_ranks(work)
    assert found[0][0] < 2 * 8 * 1000 + 3_000  # 16 kB of weights once, not three times
    for rank, (_, state) in enumerate(found):
        assert state["weights"]["a"].tolist() == list(range(1000))
        assert state["weights"]["b"].tolist() == [1.0] * 1000
        assert (state["own"].tolist(), state["part"].tolist(), state["n"]) == ([rank] * 2, [rank * 2, rank * 2 + 1], 3)


def test_one_process_reads_what_many_have_shared(tmp_path: Path, owners: Any) -> None:
    def work(rank: int, gang: Gang) -> None:
        owners.owner = _Owner(rank, gang, tmp_path)
        with CheckpointManager(tmp_path) as checkpoints:
            checkpoints.save(_state(rank), 5, share=True)

    _on_ranks(work)
    ambient.owner = None
    with CheckpointManager(open_store(str(tmp_path)), rank=0, world_size=1) as checkpoints:
        state = checkpoints.load()
        assert list(checkpoints.load(names=["weights/b"])) == ["weights/b"]
    assert state["weights"]["a"].tolist() == list(range(1000))
    assert state["part"].tolist() == list(range(6))
