"""The data folder is its owner's alone."""

import ast
import logging
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from strata.datadir import _FILES, _FOLDERS, check_data_dir, is_ours, nearest_folder, open_data_dir, write_private
from strata.errors import InvalidConfig


def _mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_new_folder_is_closed_to_others(tmp_path: Path) -> None:
    open_data_dir(tmp_path / "a" / "b")
    assert _mode(tmp_path / "a" / "b") == 0o700


@pytest.mark.parametrize("content", ["", "token", "offline", "token.part", "agent.json.4711"])
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


def test_a_folder_that_cannot_be_looked_for_is_an_error_and_one_that_is_not_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for fine in (tmp_path, tmp_path / "none", tmp_path / "file" / "data"):
        check_data_dir(fine)
    for odd in ("x" * 5_000, "x" * 300):
        with pytest.raises(InvalidConfig, match="x cannot be used: File name too long") as caught:
            check_data_dir(tmp_path / odd)
        assert len(caught.value.message) < 400
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    with pytest.raises(InvalidConfig, match="Too many levels of symbolic links"):
        check_data_dir(tmp_path / "itself" / "data")


def test_a_file_in_its_place_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfig, match="cannot be used"):
        open_data_dir(tmp_path / "file" / "data")


_ROOT = Path(__file__).resolve().parents[2]
# By a name that the code makes up: `strata up` waits for what its children write, and looks for endpoints.
_MADE_UP = {("strata/cli/up.py", "f'{name}.json'"), ("strata/client/endpoints.py", "name")}
# The CA of an agent that a launcher starts is written beside the names that a variable called data_dir shows.
_UNSEEN = {"ca.pem"}


def test_every_name_that_the_code_puts_into_a_data_folder_is_listed() -> None:
    """And nothing is listed that nobody puts there. tests/integration/cli/test_up.py looks into that of a cluster."""
    used = {name for file in sorted((_ROOT / "strata").rglob("*.py")) for name in _names(file)}
    assert {name for name in used if not is_ours(name)} == set()
    assert (_FOLDERS | _FILES) - used == _UNSEEN


def _names(file: Path) -> Iterator[str]:
    """The first parts of paths below something that is called data_dir, and of the locks there."""
    place = str(file.relative_to(_ROOT))
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_folder(node.value, set())]
    also = {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_folder(node.left, also):
            if (place, ast.unparse(node.right)) not in _MADE_UP:
                yield _value(place, node.right).partition("/")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "FolderLock":
            where, purpose = node.args
            if _is_folder(where, also) or "folder.parent" in ast.unparse(where):  # the store's, beside its own folder
                yield f"{_value(place, purpose)}.lock"


def _is_folder(node: ast.expr, also: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in {"data_dir", *also}
    if isinstance(node, ast.Attribute):
        return node.attr in {"data_dir", "_data_dir"}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "resolve":
        return _is_folder(node.func.value, also)
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "Path" and _is_folder(node.args[0], also)


def _value(place: str, node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    module = import_module(place.removesuffix(".py").replace("/", "."))
    return str(getattr(module, ast.unparse(node)))  # a constant of the module


def test_a_file_that_is_half_written_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", killed)
    for name in ("token", "alert-rules.json"):
        with pytest.raises(KeyboardInterrupt):
            write_private(tmp_path / name, "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alert-rules.json.part", "token.part"]
    assert all(is_ours(path.name) for path in tmp_path.iterdir())
    assert not is_ours("thesis.part")
    assert not is_ours("metrics.part")


def test_the_nearest_folder_is_what_there_is_of_a_path(tmp_path: Path) -> None:
    assert nearest_folder(tmp_path) == tmp_path
    assert nearest_folder(tmp_path / "a" / "b") == tmp_path
    (tmp_path / "file").touch()
    assert nearest_folder(tmp_path / "file" / "b") == tmp_path / "file"
