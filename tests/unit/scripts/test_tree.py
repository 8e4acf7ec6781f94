"""docs/tree.md: every file with its own first sentence."""

from pathlib import Path

from scripts.tree import listing, phrase, speechless

FILES = {
    "strata/__init__.py": "",
    "strata/errors.py": '"""Every error: one tree. More words."""',
    "strata/types/__init__.py": '"""Records."""',
    "strata/types/mute.py": "",
    "strata/protocol/generated/x_pb2.py": "",
    "strata/__pycache__/errors.pyc": "",
    "proto/a.proto": "// What is asked,\n// and by whom. More.\nsyntax",
    "dashboard/src/api/client.ts": "/** Calls. And more. */",
    "dashboard/src/api/client.test.ts": "",
    "docs/page.md": "# A page\n\nwith text",
    "tests/unit/deep/test_x.py": "",
}


def _lay_out(root: Path) -> None:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "strata" / "empty").mkdir()


def test_files_of_code_and_pages_are_listed_and_of_tests_the_folders(tmp_path: Path) -> None:
    _lay_out(tmp_path)
    assert [path for path in listing(tmp_path) if not path.endswith("/")] == [
        "proto/a.proto",
        "strata/errors.py",
        "strata/types/mute.py",
        "dashboard/src/api/client.ts",
        "docs/page.md",
    ]
    assert [path for path in listing(tmp_path) if path.startswith(("strata/", "tests/")) and path.endswith("/")] == [
        "strata/",
        "strata/types/",
        "tests/",
        "tests/unit/",
    ]


def test_every_kind_of_file_is_quoted_and_the_silent_are_named(tmp_path: Path) -> None:
    _lay_out(tmp_path)
    quoted = [path for path in listing(tmp_path) if not path.endswith("/")] + ["strata/types/"]
    assert {path: phrase(path, tmp_path) for path in quoted} == {
        "proto/a.proto": "What is asked, and by whom",
        "strata/errors.py": "Every error: one tree",
        "strata/types/": "Records",
        "strata/types/mute.py": "",
        "dashboard/src/api/client.ts": "Calls",
        "docs/page.md": "A page",
    }
    assert speechless(tmp_path) == ["strata/types/mute.py"]
