"""docs/specification.md is complete: every claim once, every test that it names exists and `make test-all` runs it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "specification.md"
CLAIMS = 171
MET = {"as written", "differently"}

ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d+ \|", line)
]


def test_every_claim_is_there_once_and_in_order_of_its_document() -> None:
    assert all(len(row) == 5 for row in ROWS)
    assert sorted(int(row[0]) for row in ROWS) == list(range(1, CLAIMS + 1))


def test_every_claim_says_how_it_is_met() -> None:
    assert {row[2] for row in ROWS} <= MET
    assert sum(row[2] == "as written" for row in ROWS) >= 168
    unexplained = [row[0] for row in ROWS if row[2] == "differently" and len(row[3]) < 40]
    assert unexplained == []


def _tests_of(path: Path) -> dict[str, str]:
    """Each test with all that can keep it from running: its own source, its decorators and the marks of its file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    marks = [
        ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)
    ]
    return {
        node.name: "\n".join([*marks, ast.unparse(node)])
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _left_out(source: str) -> str | None:
    """What a line must name when its test is not always run."""
    for marker in ("torch", "launchers"):
        if f"mark.{marker}" in source:
            return f"make test-{marker}"
    return "skipped" if re.search(r"mark\.(skip|xfail)|pytest\.(skip|xfail|importorskip)\(", source) else None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_the_named_tests_exist_and_are_run(row: list[str]) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row[4])
    assert named, "a claim names the test that shows it"
    for path, name in named:
        assert (ROOT / path).is_file(), path
        tests = _tests_of(ROOT / path)
        assert name in tests, f"{path} has no {name}"
        needed = _left_out(tests[name])
        assert needed is None or needed in row[3], f"`make test-all` may leave out {name}: say {needed!r} in the line"


def test_what_leaves_a_test_out_is_seen() -> None:
    assert _left_out("@pytest.mark.torch\ndef test_x(): ...") == "make test-torch"
    assert _left_out("pytestmark = pytest.mark.skipif(True)\ndef test_x(): ...") == "skipped"
    assert _left_out("def test_x():\n    pytest.skip('no')") == "skipped"
    assert _left_out("def test_x(): ...") is None
