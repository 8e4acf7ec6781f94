"""Writes docs/tree.md, the list of every file with its own first sentence; without --write it only checks the page.

A Python module's sentence is the first of its docstring, a package's that of its `__init__.py`, a page's its title, and
that of a proto or TypeScript file its first comment. Folders of other kinds have theirs in FOLDERS.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tree.md"
# In the order of the page.
ROOTS = ("proto", "strata", "dtruntime", "engine", "dashboard", "examples", "benchmarks", "scripts", "docs", "tests")
FOLDERS = {
    "proto": "the wire, as any client of any language sees it",
    "strata": "the package; `__init__.py` is what a training script imports",
    "engine": "the embedded engine as a package of ours, made of its makers' wheel where it is installed",
    "dashboard": "the web page: React, TypeScript, Vite",
    "dashboard/public": "files that are served as they are",
    "dashboard/src": "imports point down: app, features, components, hooks, stores and data, api, lib",
    "dashboard/src/api": "REST calls and the one event stream",
    "dashboard/src/api/demo": "a source of made-up data, for working on the page without a server",
    "dashboard/src/app": "the shell: rail, top bar, routes",
    "dashboard/src/components": "what several features share",
    "dashboard/src/data": "series, logs and history as plain mutable data outside React",
    "dashboard/src/features": "one folder per page; a feature never imports another",
    "dashboard/src/hooks": "React hooks that several layers share",
    "dashboard/src/lib": "pure functions",
    "dashboard/src/stores": "small Zustand stores",
    "examples": "small scripts that really train",
    "benchmarks/scripts": "scripts that benchmarks run as processes of their own",
    "scripts": "chores of this repository, each one command",
    "docs": "pages for users, and why things are as they are",
    "docs/adr": "one page per decision that would surprise a reader",
    "docs/frameworks": "a page per training framework",
    "docs/migrating": "for those who come from elsewhere: what is called what here",
    "docs/img": "pictures of every page, made by `make screenshots`",
    "docs/reference": "the contract, generated from the code by `make reference`",
    "docs/research": "the measurements that decisions rest on",
    "tests": "every test; a name says what it shows, so files are not listed",
    "tests/browser": "the dashboard in a real chromium, on a real training job",
    "tests/contract": "one suite per Protocol, run on every implementation",
    "tests/frameworks": "the examples of each framework, killed, stopped and resumed with equal losses",
    "tests/hosts": "several hosts as network namespaces, page by page (make test-hosts)",
    "tests/integration": "real processes, real sockets, real kills",
    "tests/support": "real servers and builders that tests share",
    "tests/unit": "mirrors strata/",
}
NOT_OURS = {"__pycache__", "generated", "node_modules", "web", "dist", "results"}
SUFFIXES = {".py", ".proto", ".md", ".ts", ".tsx"}
COLUMN = 34
LONGEST = 110
HEAD = """# The tree

Every file and what it is for. This page is generated: run `make tree` after adding, moving or removing a file. The
words are the first sentence of the file itself.

"""


def listing(root: Path = ROOT) -> list[str]:
    """Every path of the page, folders with a trailing slash; a folder without files does not exist for git either."""
    return [path for name in ROOTS for path in _walk(root, root / name)]


def _walk(root: Path, folder: Path) -> Iterator[str]:
    inside = sorted(path for path in folder.iterdir() if _is_ours(path)) if folder.is_dir() else []
    place = folder.relative_to(root)
    if not any(path.is_file() or _holds_files(path) for path in inside) or (
        place.parts[0] == "tests" and _is_deep(place)
    ):
        return
    yield f"{place.as_posix()}/"
    yield from (path.relative_to(root).as_posix() for path in inside if _is_listed(path.relative_to(root)))
    for path in inside:
        if path.is_dir():
            yield from _walk(root, path)


def _is_listed(path: Path) -> bool:
    is_code = path.suffix in SUFFIXES and path.name != "__init__.py" and ".test." not in path.name
    return is_code and path.parts[0] != "tests"


def _is_deep(place: Path) -> bool:
    return len(place.parts) > 2


def _holds_files(folder: Path) -> bool:
    return any(path.is_file() and all(map(_is_ours, (path, *path.parents))) for path in folder.rglob("*"))


def _is_ours(path: Path) -> bool:
    return path.name not in NOT_OURS and not path.name.startswith(".")


def phrase(path: str, root: Path = ROOT) -> str:
    """What a file or a folder says about itself; empty when it says nothing."""
    name = path.rstrip("/")
    if name in FOLDERS:
        return FOLDERS[name]
    file = root / path / "__init__.py" if path.endswith("/") else root / path
    return _sentence(_first_words(file)) if file.is_file() else ""


def _first_words(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    if file.suffix == ".md":
        return text.partition("\n")[0].lstrip("# ")
    comment = re.match(r"/\*\*(.*?)\*/|((?://(?!/).*\n)+)", text, re.DOTALL)
    return re.sub(r"^\s*(//|\*)", "", comment[1] or comment[2], flags=re.MULTILINE) if comment else ""


def _sentence(text: str) -> str:
    """The first sentence, cut at a comma when it is too long for a line."""
    sentence = re.split(r"(?<=[\w`)'\"/])[.;](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]
    if len(sentence) <= LONGEST:
        return sentence
    return re.sub(r"[,:(][^,:(]*$", "", sentence[: LONGEST + 1]).rstrip()


def render(root: Path = ROOT) -> str:
    """The whole page."""
    lines = []
    for path in listing(root):
        level = path.rstrip("/").count("/")
        name = path.rstrip("/").rsplit("/", 1)[-1] + ("/" if path.endswith("/") else "")
        lines.append(f"{'  ' * level}{name}".ljust(COLUMN) + f" {phrase(path, root)}")
    return f"{HEAD}```text\n" + "".join(f"{line.rstrip()}\n" for line in lines) + "```\n"


def speechless(root: Path = ROOT) -> list[str]:
    """Paths without words. A component of the page may be known by its name alone."""
    return [path for path in listing(root) if not phrase(path, root) and not path.startswith("dashboard/")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    page = render()
    if parser.parse_args().write:
        PAGE.write_text(page, encoding="utf-8")
    found = [f"{path} does not say what it is for" for path in speechless()]
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        found.append("docs/tree.md is out of date: run `make tree`")
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
