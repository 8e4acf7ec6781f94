"""A dataset in a real S3 bucket (SeaweedFS): listed, indexed by ranges, read through the local cache."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strata.data import Loader, build_manifest
from strata.data.files.cache import LocalCache
from strata.errors import DataError
from strata.storage import ObjectStore, open_store
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, seaweed

if TYPE_CHECKING:
    from tests.support.datasets import Dataset


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> str:
    server = seaweed()
    server.make_bucket("data-tests")
    for name, value in {
        "AWS_ENDPOINT_URL": server.endpoint_url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    return f"s3://data-tests/{secrets.token_hex(4)}"


def upload(dataset: "Dataset", bucket: str) -> ObjectStore:
    store = open_store(bucket)
    for path in dataset.folder.iterdir():
        store.put(f"set/{path.name}", path.read_bytes())
    return store


def test_every_format_reads_from_a_bucket(dataset: "Dataset", bucket: str, tmp_path: Path) -> None:
    upload(dataset, bucket)
    if dataset.format == "mds":
        with pytest.raises(DataError, match="MDS shards are read from local disks only"):
            Loader(f"{bucket}/set/*.mds", 16, cache_dir=tmp_path / "cache")
        return
    loader = Loader(f"{bucket}/set/*{dataset.suffix}", 16, cache_dir=tmp_path / "cache")
    local = Loader(dataset.glob, 16)
    seen = [batch["id"].tolist() for batch in loader]
    assert seen == [batch["id"].tolist() for batch in local], "the same files in a bucket give the same order"
    assert sum(path.stat().st_size for path in (tmp_path / "cache" / "files").iterdir()) > 0


def test_a_manifest_reads_footers_only(parquet: "Dataset", bucket: str, tmp_path: Path) -> None:
    upload(parquet, bucket)
    manifest = build_manifest(f"{bucket}/set", "parquet", cache=LocalCache(tmp_path / "cache"))
    assert manifest.num_samples == 140
    assert not (tmp_path / "cache").exists(), "nothing was copied to make a manifest"


def test_an_object_that_went_away_is_named(parquet: "Dataset", bucket: str, tmp_path: Path) -> None:
    store = upload(parquet, bucket)
    manifest = build_manifest(f"{bucket}/set/*.parquet", cache=LocalCache(tmp_path / "cache"))
    store.delete("set/part-2.parquet")
    with pytest.raises(DataError, match=r"part-2.parquet is gone"):
        list(Loader(manifest, 16))
