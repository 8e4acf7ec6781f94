"""Hosts that share the place of checkpoints say the same word of it, others do not."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strata.config import Settings
from strata.errors import InvalidConfig
from strata.storage.home import checkpoint_home, home_identity


def test_whoever_sees_the_same_folder_says_the_same_word(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as hosts:
        words = set(hosts.map(home_identity, [str(tmp_path / "shared")] * 64))
    assert len(words) == 1
    assert words.pop().startswith(f"{tmp_path}/shared#")
    assert [path.name for path in (tmp_path / "shared").iterdir()] == [".home"]


def test_folders_of_the_same_name_on_two_hosts_are_two(tmp_path: Path) -> None:
    """Here one after the other: the second host never had the first one's file."""
    first = home_identity(str(tmp_path / "checkpoints"))
    (tmp_path / "checkpoints").rename(tmp_path / "of-another-host")
    assert home_identity(str(tmp_path / "checkpoints")) != first


def test_a_folder_that_cannot_be_made_is_the_hosts_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert home_identity(str(tmp_path / "file" / "below")).startswith(f"{tmp_path}/file/below#")


def test_the_home_is_a_bucket_a_folder_or_in_the_data_folder(tmp_path: Path) -> None:
    assert checkpoint_home(Settings(data_dir=tmp_path)) == f"{tmp_path}/checkpoints"
    assert checkpoint_home(Settings(checkpoint_bucket="/mnt/all/")) == "/mnt/all"
    assert checkpoint_home(Settings(storage_backend="s3", checkpoint_bucket="name")) == "s3://name"
    assert checkpoint_home(Settings(storage_backend="s3", checkpoint_bucket="gs://name/")) == "gs://name"
    assert home_identity("gs://name") == "gs://name"
    with pytest.raises(InvalidConfig, match="CHECKPOINT_BUCKET is not set"):
        checkpoint_home(Settings(storage_backend="s3"))
