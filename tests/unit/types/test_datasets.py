"""Dataset records refuse what cannot be sharded and show the bad value."""

import pytest

from strata.errors import InvalidArgument
from strata.types.datasets import DataFile, DatasetSpec


def test_shards_round_up() -> None:
    assert DatasetSpec(dataset_id="d", total_samples=1281167, shard_size=10000).num_shards == 129
    assert DatasetSpec(dataset_id="d", total_samples=1, shard_size=10).num_shards == 1


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"total_samples": 0}, "0"),
        ({"shard_size": 0}, "shard_size"),
        ({"dataset_id": "../etc"}, "../etc"),
        ({"seed": 1 << 64}, "seed"),
        ({"total_samples": 10**12, "shard_size": 1}, "1000000000000 shards"),
        ({"files": (DataFile(path="a", num_samples=3),)}, "hold 3 samples, not 100"),
    ],
)
def test_bad_values_are_refused_and_shown(fields: dict[str, object], shown: str) -> None:
    good: dict[str, object] = {"dataset_id": "d", "total_samples": 100, "shard_size": 10}
    with pytest.raises(InvalidArgument, match=shown):
        DatasetSpec(**{**good, **fields})  # type: ignore[arg-type]  # wrong on purpose
