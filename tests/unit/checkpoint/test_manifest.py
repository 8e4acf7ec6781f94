"""Manifests: any flipped bit or cut is noticed."""

import pytest

from strata.checkpoint.manifest import CommitManifest, RankEntry, RankManifest, TensorRecord
from strata.errors import CorruptCheckpoint

_COMMIT = CommitManifest(
    step=7,
    epoch=1,
    attempt="0-ab",
    generation=0,
    created_at=1.5,
    duration_s=0.25,
    writer="strata",
    worker_id="w-0",
    task_id=None,
    metadata={"lr": 0.1, "ü": [1, None]},
    ranks=(
        RankEntry(
            rank=0, key="k", size=10, manifest_key="m", manifest_size=3, manifest_digest="d", data_state={"at": 5}
        ),
    ),
)
_RANK = RankManifest(
    step=7,
    attempt="0-ab",
    rank=3,
    key="k",
    size=100,
    chunks=("aa", "bb"),
    tensors={
        "w": TensorRecord(dtype="F32", shape=(2, 2), offset=64, nbytes=16, global_shape=(8, 2), global_offset=(2, 0)),
        "b": TensorRecord(dtype="F32", shape=(), offset=80, nbytes=4),
    },
    tree={"w": {"$array": "w", "kind": "numpy"}},
    data_state=None,
    metadata={},
)


def test_both_come_back_equal() -> None:
    assert CommitManifest.from_bytes(_COMMIT.to_bytes(), "COMMIT") == _COMMIT
    assert RankManifest.from_bytes(_RANK.to_bytes(), "rank") == _RANK
    assert (_COMMIT.world_size, _COMMIT.total_bytes) == (1, 10)


def test_every_single_flipped_bit_is_noticed() -> None:
    data = _COMMIT.to_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(CorruptCheckpoint, match="COMMIT does not match its own hash"):
            CommitManifest.from_bytes(bytes(damaged), "COMMIT")


@pytest.mark.parametrize("cut", [0, 1, 20, -1])
def test_every_cut_is_noticed(cut: int) -> None:
    with pytest.raises(CorruptCheckpoint):
        RankManifest.from_bytes(_RANK.to_bytes()[:cut], "rank")


def test_the_arrays_of_a_byte_range_are_named() -> None:
    assert _RANK.tensors_at(0, 64) == []
    assert _RANK.tensors_at(70, 81) == ["w", "b"]
