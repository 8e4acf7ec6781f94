"""The public record of a checkpoint refuses values that cannot be."""

from typing import Any

import pytest

from strata.errors import InvalidArgument
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus

_GOOD: dict[str, Any] = {
    "id": "step-000000000001.0-ab",
    "step": 1,
    "epoch": 0,
    "path": "s3://bucket/run/step-000000000001",
    "size_bytes": 10,
    "created_at": 1.0,
    "status": "completed",
}


def test_what_is_not_known_is_none() -> None:
    info = CheckpointInfo(**_GOOD)
    assert info.status is CheckpointStatus.COMPLETED
    assert (info.worker_id, info.duration_s, info.throughput, info.verified) == (None, None, None, None)
    assert dict(info.metadata) == {}


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"step": -1}, "step is -1"),
        ({"epoch": -2}, "epoch is -2"),
        ({"size_bytes": -3}, "size_bytes is -3"),
        ({"created_at": float("nan")}, "created_at is nan"),
        ({"duration_s": -1.0}, "duration_s is -1"),
        ({"id": "../up"}, "not a valid name"),
    ],
)
def test_impossible_values_are_shown(change: dict[str, Any], shown: str) -> None:
    with pytest.raises(InvalidArgument, match=shown):
        CheckpointInfo(**(_GOOD | change))


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="lost"):
        CheckpointInfo(**(_GOOD | {"status": "lost"}))
