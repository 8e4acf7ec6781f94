"""Keeps the tree in ARCHITECTURE.md true: says what is missing or stale; `--write` mends it.

The tree is the fenced block marked `tree`: two spaces of indent per folder, a name, a phrase. A phrase that is
there is kept; a new file's is the first sentence of its docstring, a new folder's that of its `__init__.py`.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
# In the order of the page. Of the first kind every file is listed, of the second the folders down to a depth.
WITH_FILES = ("proto", "strata", "dtruntime", "benchmarks", "scripts", "examples")
FOLDERS_ONLY = {"tests": 2, "dashboard": 3, "docs": 2}
NOT_OURS = {"__pycache__", "generated", "node_modules", "web", "dist", "results"}
SUFFIXES = {".py", ".proto"}
COLUMN = 30
LONGEST = 96


def real_tree(root: Path = ROOT) -> list[str]:
    """What is on the disk, folders with a trailing slash; a folder without files does not exist for git either."""
    found: list[str] = []
    for name in WITH_FILES:
        found += _walk(root, root / name, depth=99, files=True)
    for name, depth in FOLDERS_ONLY.items():
        found += _walk(root, root / name, depth=depth, files=False)
    return found


def _walk(root: Path, folder: Path, *, depth: int, files: bool) -> Iterator[str]:
    inside = [path for path in sorted(folder.iterdir()) if _is_ours(path.name)] if folder.is_dir() else []
    if depth == 0 or not any(path.is_file() or _holds_files(path) for path in inside):
        return
    yield folder.relative_to(root).as_posix() + "/"
    for path in inside:
        if files and path.suffix in SUFFIXES and path.name != "__init__.py":
            yield path.relative_to(root).as_posix()
    for path in inside:
        if path.is_dir():
            yield from _walk(root, path, depth=depth - 1, files=files)


def _holds_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*") if all(map(_is_ours, path.relative_to(folder).parts)))


def _is_ours(name: str) -> bool:
    return name not in NOT_OURS and not name.startswith(".")


def parse(page: str) -> dict[str, str]:
    """Path → phrase of the page's tree."""
    block = re.search(r"^```tree\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    if block is None:
        raise ValueError("the page has no block that starts with ```tree")
    entries: dict[str, str] = {}
    parents: list[str] = []
    for line in block[1].splitlines():
        name, _, phrase = line.strip().partition(" ")
        level = (len(line) - len(line.lstrip())) // 2
        path = "".join(parents[:level]) + name
        parents[level:] = [name]
        entries[path] = phrase.strip()
    return entries


def render(entries: Mapping[str, str]) -> str:
    lines = []
    for path, phrase in entries.items():
        level = path.rstrip("/").count("/")
        name = path.rstrip("/").rsplit("/", 1)[-1] + ("/" if path.endswith("/") else "")
        lines.append(f"{'  ' * level}{name}".ljust(COLUMN) + f" {phrase}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def faults(written: Mapping[str, str], real: Iterable[str]) -> list[str]:
    existing = set(real)
    return (
        [f"missing: {path}" for path in existing - set(written)]
        + [f"stale: {path}" for path in set(written) - existing]
        + [f"no phrase: {path}" for path in existing if not written.get(path, "-")]
    )


def _first_sentence(path: str) -> str:
    """What a module says about itself; empty when it says nothing, and then the page must."""
    file = ROOT / path / "__init__.py" if path.endswith("/") else ROOT / path
    if file.suffix != ".py" or not file.exists():
        return ""
    doc = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split())
    sentence = re.split(r"(?<=[\w`)])[.;](?:\s|$)", doc, maxsplit=1)[0]
    sentence = re.sub(r"^\S+( \S+)?: ", "", sentence)  # "Barriers: who waits…" repeats the file's name
    if len(sentence) > LONGEST:
        sentence = re.split(r"[,(][^,(]*$", sentence.split(": ")[0][:LONGEST])[0].rstrip()
    first_word = sentence.split(" ", 1)[0]
    return sentence if re.search("[A-Z`]", first_word[1:]) else sentence[:1].lower() + sentence[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="mend the page")
    page = PAGE.read_text(encoding="utf-8")
    written, real = parse(page), real_tree()
    if parser.parse_args().write:
        written = {path: written.get(path) or _first_sentence(path) for path in real}
        block = f"```tree\n{render(written)}```"
        PAGE.write_text(re.sub(r"^```tree\n.*?^```$", lambda _: block, page, flags=re.DOTALL | re.MULTILINE), "utf-8")
    found = sorted(faults(written, real))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
