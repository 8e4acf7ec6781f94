"""The tree of ARCHITECTURE.md: what is parsed is what is rendered, and every kind of fault is named."""

from pathlib import Path

import pytest

from scripts.tree import faults, parse, real_tree, render

ENTRIES = {
    "strata/": "the package",
    "strata/errors.py": "one tree",
    "strata/types/": "records",
    "strata/types/names.py": "the grammar of names",
    "tests/": "every test",
}


def test_what_is_rendered_parses_back() -> None:
    assert parse(f"# Page\n\n```tree\n{render(ENTRIES)}```\n\nmore\n") == ENTRIES


def test_a_page_without_a_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="no block"):
        parse("```\nstrata/\n```\n")


def test_missing_stale_and_speechless_entries_are_named() -> None:
    written = {"strata/": "the package", "strata/old.py": "gone", "strata/mute.py": ""}
    found = faults(written, ["strata/", "strata/new.py", "strata/mute.py"])
    assert sorted(found) == ["missing: strata/new.py", "no phrase: strata/mute.py", "stale: strata/old.py"]


def test_the_real_tree_holds_files_of_code_and_folders_of_tests(tmp_path: Path) -> None:
    for name in (
        "strata/__init__.py",
        "strata/errors.py",
        "strata/types/names.py",
        "strata/protocol/generated/x_pb2.py",
        "strata/__pycache__/errors.pyc",
        "tests/unit/deep/test_x.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "strata" / "empty").mkdir()
    assert real_tree(tmp_path) == [
        "strata/",
        "strata/errors.py",
        "strata/types/",
        "strata/types/names.py",
        "tests/",
        "tests/unit/",
    ]
