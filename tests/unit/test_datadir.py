"""The data folder is its owner's alone."""

import logging
from pathlib import Path

import pytest

from strata.datadir import nearest_folder, open_data_dir
from strata.errors import InvalidConfig


def _mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_new_folder_is_closed_to_others(tmp_path: Path) -> None:
    open_data_dir(tmp_path / "a" / "b")
    assert _mode(tmp_path / "a" / "b") == 0o700


@pytest.mark.parametrize("content", ["", "token", "offline"])
def test_our_own_older_folder_is_closed(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "strata"
    folder.mkdir(mode=0o755)
    if content:
        (folder / content).mkdir()
    folder.chmod(0o755)
    open_data_dir(folder)
    assert _mode(folder) == 0o700


def test_a_folder_of_other_things_is_left_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "thesis.tex").touch()
    with caplog.at_level(logging.WARNING):
        open_data_dir(folder)
    assert _mode(folder) == 0o755
    assert "other users may enter the data folder" in caplog.text
    (folder / "token").touch()
    open_data_dir(folder)  # the next process of ours, beside the first one's files
    assert _mode(folder) == 0o755


def test_a_file_in_its_place_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfig, match="cannot be used"):
        open_data_dir(tmp_path / "file" / "data")


def test_the_nearest_folder_is_what_there_is_of_a_path(tmp_path: Path) -> None:
    assert nearest_folder(tmp_path) == tmp_path
    assert nearest_folder(tmp_path / "a" / "b") == tmp_path
    (tmp_path / "file").touch()
    assert nearest_folder(tmp_path / "file" / "b") == tmp_path / "file"
