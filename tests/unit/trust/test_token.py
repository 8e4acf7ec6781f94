"""The token: made once, readable by its owner alone, the same for all who start together."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strata.config import Secret, Settings
from strata.errors import InvalidConfig
from strata.trust.token import ensure_token, read_token


def settings(folder: Path, token: Secret | None = None) -> Settings:
    return Settings(data_dir=folder, token=token)


def test_it_is_made_once_and_found_again(tmp_path: Path) -> None:
    here = settings(tmp_path / "data")
    assert read_token(here) is None
    token = ensure_token(here)
    assert len(token) >= 40
    assert (tmp_path / "data" / "token").stat().st_mode & 0o777 == 0o600
    assert ensure_token(here) == read_token(here) == token
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["token"]


def test_a_given_token_wins_and_is_not_written(tmp_path: Path) -> None:
    here = settings(tmp_path, token=Secret("mine"))
    assert ensure_token(here) == "mine"
    assert not (tmp_path / "token").exists()


def test_all_who_start_together_agree(tmp_path: Path) -> None:
    here = settings(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: ensure_token(here), range(32)))) == 1


def test_an_empty_file_is_no_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    assert read_token(settings(tmp_path)) is None
    with pytest.raises(InvalidConfig, match="token is empty"):
        ensure_token(settings(tmp_path))


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidConfig, match="cannot be used"):
        ensure_token(settings(tmp_path / "file"))
