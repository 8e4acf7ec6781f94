"""What a text of this repository refers to is in this repository: pages, files and decisions."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.site import api_pages

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = (
    "strata",
    "dtruntime",
    "engine",
    "proto",
    "benchmarks",
    "scripts",
    "examples",
    "tests",
    "docs",
    "dashboard/src",
    ".ci",
)
_KINDS = {".py", ".md", ".proto", ".ts", ".tsx", ".css", ".toml", ""}
# Results are written by machines; CHANGELOG tells of what was.
_LEFT_OUT = {"results", "generated", "__pycache__"}

# Documents that the authors had and readers have not.
_OUTSIDE = (
    re.compile(r"\b(?:contract|spec|design)\s?§"),
    re.compile(r"\b[Ss]pec(?:ification)? \d"),
    re.compile(r"\b[Dd]ocuments? \d"),
    re.compile(r"\b[Ii]ssues? #?\d"),
    re.compile(r"\b(?:shared|design|spec)/[\w-]+\.md"),
)
_PAGE = re.compile(r"(?<![\w/.-])((?:\.\./)*(?:[\w-]+/)*[\w.-]+\.md)\b")
_PATH = re.compile(
    r"`((?:strata|dtruntime|engine|proto|dashboard|benchmarks|scripts|examples|docs|tests|\.ci|\.github)/[\w./-]*)"
)
_NAME_IN_FILE = re.compile(r"`(\w+)` (?:of|in)\s`([\w./-]+\.(?:py|ts|tsx))`")
_DECISION = re.compile(r"\bADR (\d+)|\badr/(\d{4})\b")


def _texts() -> Iterator[Path]:
    yield from (*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml")
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in _KINDS and not _LEFT_OUT & set(path.parts):
                yield path


TEXTS = [path for path in _texts() if path != Path(__file__) and path.name != "CHANGELOG.md"]


def test_no_text_refers_to_a_document_outside() -> None:
    wrong = []
    for path in TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            wrong += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for one in _OUTSIDE if one.search(line)]
    assert not wrong, "\n".join(wrong)


def test_every_page_that_is_named_exists() -> None:
    """By its path or by the end of it; or the documentation's site makes it. Tests may make up pages of their own."""
    pages = [f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*.md") if "node_modules" not in path.parts]
    pages += ["/index.md", *(f"/{name}" for name in api_pages())]
    wrong = []
    for path in (one for one in TEXTS if one.relative_to(ROOT).parts[0] != "tests"):
        for name in set(_PAGE.findall(path.read_text(encoding="utf-8"))):
            known = any(page.endswith("/" + name.replace("../", "")) for page in pages)
            wrong += [] if known else [f"{path.relative_to(ROOT)} names {name}"]
    assert not wrong, "\n".join(wrong)


PAGES = [path for path in TEXTS if path.suffix == ".md"]


def test_every_path_that_a_page_names_exists() -> None:
    wrong = []
    for page in PAGES:
        named = {name.rstrip("/.") for name in _PATH.findall(page.read_text(encoding="utf-8"))}
        wrong += [f"{page.relative_to(ROOT)} names {name}" for name in sorted(named) if not (ROOT / name).exists()]
    assert not wrong, "\n".join(wrong)


def test_the_recipes_name_what_is_really_there() -> None:
    """`NAME` of `file` is defined in it, and every `make` target exists."""
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = _NAME_IN_FILE.findall(recipes)
    assert len(found) >= 8
    wrong = [f"{name} is not in {file}" for name, file in found if not re.search(rf"\b{name}\b", _text(file))]
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    for words in re.findall(r"`make ([a-z -]+?)(?: [A-Z]+=.*?)?`", recipes):
        wrong += [f"make {word} is no target" for word in words.split() if word not in targets]
    assert not wrong, "\n".join(wrong)


def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def test_every_decision_that_is_named_exists() -> None:
    decided = {int(page.name[:4]) for page in (ROOT / "docs" / "adr").glob("[0-9]*.md")}
    wrong = []
    for path in TEXTS:
        named = {int(first or second) for first, second in _DECISION.findall(path.read_text(encoding="utf-8"))}
        wrong += [f"{path.relative_to(ROOT)} names ADR {number}" for number in sorted(named - decided)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text", ["see contract §4", "spec 5's paths", "documents 1 and 2", "issue 15", "spec/claims.md"]
)
def test_the_check_sees(text: str) -> None:
    assert any(one.search(text) for one in _OUTSIDE)
