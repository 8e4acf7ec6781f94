"""Cursors are small, plain JSON, and refuse to go on in another order or for another holder."""

import json

import numpy as np
import pytest

from strata.errors import Fenced, InvalidArgument, Refused
from strata.sharding.cursor import QueueCursor, SyncCursor


def test_sync_cursor_survives_json_in_less_than_a_kilobyte() -> None:
    cursor = SyncCursor(digest="d" * 24, seed=2**63 - 1, epoch=10**6, position=10**12)
    text = json.dumps(cursor.to_dict())
    assert len(text) < 200
    assert SyncCursor.from_dict(json.loads(text)) == cursor


def test_sync_cursor_refuses_another_order() -> None:
    with pytest.raises(Refused, match="order a, this loader reads order b"):
        SyncCursor(digest="a", seed=0).check("b")
    with pytest.raises(InvalidArgument, match="kind is 'queue'"):
        SyncCursor.from_dict({"kind": "queue"})
    with pytest.raises(InvalidArgument, match="digest"):
        SyncCursor.from_dict({"kind": "sync"})
    with pytest.raises(InvalidArgument, match="is incomplete"):
        SyncCursor.from_dict({"kind": "sync", "digest": "a", "seed": None})
    with pytest.raises(InvalidArgument, match=r"as state_dict\(\) gives it, and not None"):
        SyncCursor.from_dict(None)


def test_queue_hands_out_each_shard_once_and_skips_empty_ones() -> None:
    queue = QueueCursor(np.array([2, 0, 1]))
    assert queue.claim("a") == (0, 0)
    assert queue.claim("b") == (2, 0)
    assert queue.claim("c") is None
    queue.commit("a", 0, 2)
    queue.commit("b", 2, 1)
    assert queue.finished
    assert queue.num_committed == 3


def test_queue_gives_a_released_shard_from_its_committed_row() -> None:
    queue = QueueCursor(np.array([10, 10]))
    queue.claim("a")
    queue.commit("a", 0, 4)
    assert queue.release("a") == [0]
    with pytest.raises(Fenced, match="'a' does not hold shard 0"):
        queue.commit("a", 0, 5)
    assert queue.claim("b") == (0, 4)
    with pytest.raises(InvalidArgument, match="row 3"):
        queue.commit("b", 0, 3)


def test_queue_state_is_small() -> None:
    queue = QueueCursor(np.full(1_000_000, 10))
    for _ in range(3):
        shard, _ = queue.claim("a") or (0, 0)
        queue.commit("a", shard, 5)
    state = json.loads(json.dumps(queue.to_dict()))
    assert len(json.dumps(state)) < 2000
    restored = QueueCursor.from_dict(state, np.full(1_000_000, 10))
    assert restored.num_committed == 15
    assert restored.claim("b") == (0, 5)
    with pytest.raises(InvalidArgument, match="5 shards"):
        QueueCursor.from_dict(state, np.full(5, 10))
