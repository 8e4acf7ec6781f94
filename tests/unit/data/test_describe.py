"""What plain clients use: counts read from the files, and ranges of samples read back."""

from typing import TYPE_CHECKING

import pytest

from strata.data import build_manifest, describe_dataset, read_range
from strata.errors import DataError, InvalidArgument
from strata.sharding import ShardManager

if TYPE_CHECKING:
    from tests.support.datasets import Dataset


def test_counts_come_from_the_files(dataset: "Dataset") -> None:
    spec = describe_dataset("set", dataset.glob)
    assert spec.total_samples == 140
    assert [file.num_samples for file in spec.files] == [40, 7, 63, 30]
    assert spec.format == dataset.format
    assert 1 <= spec.num_shards <= 256


def test_the_shards_of_all_workers_are_the_dataset(dataset: "Dataset") -> None:
    manager = ShardManager()
    for worker in ("a", "b", "c"):
        manager.register_worker(worker)
    manager.register_dataset(describe_dataset("set", dataset.glob, shard_size=11))
    manifest = build_manifest(dataset.glob)
    seen = []
    for worker in manager.workers:
        for shard in manager.get_shard_for_worker("set", worker):
            rows = read_range(manifest, shard.start_index, shard.end_index, columns=["id"])
            assert list(rows) == ["id"]
            seen += rows["id"].tolist()
            assert set(shard.file_paths) <= {ref.uri for ref in manifest.files}
    assert sorted(seen) == list(range(140))


def test_ranges_outside_are_refused(parquet: "Dataset") -> None:
    manifest = build_manifest(parquet.glob)
    assert len(read_range(manifest, 5, 5)["id"]) == 0
    assert read_range(manifest, 38, 48)["id"].tolist() == list(range(38, 48))
    with pytest.raises(InvalidArgument, match="139 to 141"):
        read_range(manifest, 139, 141)


@pytest.mark.parametrize("paths", ["", [""], "file://", ["{glob}", ""]])
def test_an_empty_path_is_not_the_working_folder(
    parquet: "Dataset", monkeypatch: pytest.MonkeyPatch, paths: str | list[str]
) -> None:
    folder, _, files = parquet.glob.rpartition("/")
    monkeypatch.chdir(folder)
    given = paths if isinstance(paths, str) else [path.format(glob=files) for path in paths]
    with pytest.raises(DataError, match="a path of the data is empty"):
        build_manifest(given, "parquet")
    assert build_manifest(".", "parquet").num_samples == 140
