"""Addresses and options: what users write, what they get, and what they are told when it is wrong."""

from pathlib import Path

import pytest

from strata.errors import InvalidArgument, InvalidConfig
from strata.storage.local import LocalStore
from strata.storage.memory import MemoryStore
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store


def test_folders_in_all_their_spellings(tmp_path: Path) -> None:
    for address in (str(tmp_path), tmp_path, f"file://{tmp_path}"):
        store = open_store(address)
        assert isinstance(store, LocalStore)
        assert store.root == tmp_path
    assert isinstance(open_store("memory://x"), MemoryStore)


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        ("s3://bucket/models", "s3://bucket/models"),
        ("s3a://bucket/", "s3://bucket"),
        ("gs://bucket/a/b/", "gs://bucket/a/b"),
    ],
)
def test_buckets_are_opened_without_any_request(address: str, uri: str) -> None:
    assert open_store(address, StorageOptions(region="eu-west-1")).uri == uri


@pytest.mark.parametrize("address", ["", "ftp://host/x", "s3:///no-bucket"])
def test_bad_addresses_are_refused_with_advice(address: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        open_store(address, StorageOptions())
    assert caught.value.hint


def test_options_come_from_the_environment_and_the_prefixed_twin_wins() -> None:
    options = StorageOptions.from_environment(
        {
            "AWS_REGION": "us-west-2",
            "STRATA_AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret-value",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        }
    )
    assert (options.region, options.access_key_id) == ("eu-central-1", "key")
    assert "secret-value" not in repr(options)


@pytest.mark.parametrize(
    ("part_size", "size", "parts"),
    [
        (None, 100, (8 << 20, 16)),
        (None, 70 << 30, (8 << 20, 16)),
        (None, 840 << 30, (100_215_904, 16)),
        (None, None, (32 << 20, 4)),
        (64 << 20, 100, (64 << 20, 16)),
        (5 << 20, 70 << 30, (8_351_326, 16)),
    ],
)
def test_parts_suit_the_object_and_are_never_too_many(
    part_size: int | None, size: int | None, parts: tuple[int, int]
) -> None:
    found = StorageOptions(part_size=part_size).parts_of(size)
    assert found == parts
    assert size is None or -(-size // found.size) <= 10_000


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"part_size": 1024}, "1024"),
        ({"max_inflight": 0}, "max_inflight is 0"),
        ({"endpoint_url": "localhost:9000"}, "localhost:9000"),
        ({"access_key_id": "key"}, "AWS_SECRET_ACCESS_KEY is not set"),
        ({"max_retries": -1}, "-1"),
        ({"request_timeout_s": 0.0}, "request_timeout_s is 0.0"),
    ],
)
def test_bad_options_name_the_value(settings: dict[str, object], shown: str) -> None:
    with pytest.raises(InvalidConfig, match=shown):
        StorageOptions(**settings)  # type: ignore[arg-type]  # wrong on purpose
