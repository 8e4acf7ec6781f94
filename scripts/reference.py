"""Writes docs/reference, the contract as the code has it; `--check` only says whether it is out of date."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.contract import environment, grpc, rest, tables  # noqa: E402  found beside this script

__all__ = ["PAGES", "stale"]

PAGES: Mapping[str, Callable[[], str]] = {
    "grpc.md": grpc.render,
    "rest.md": rest.render,
    "environment.md": environment.render,
    "tables.md": tables.render,
}
FOLDER = ROOT / "docs" / "reference"


def stale() -> list[str]:
    """The pages that differ from what the code says."""
    return [name for name, render in PAGES.items() if _read(FOLDER / name) != render()]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    if not parser.parse_args().check:
        FOLDER.mkdir(exist_ok=True)
        for name, render in PAGES.items():
            (FOLDER / name).write_text(render(), encoding="utf-8")
        return 0
    found = stale()
    sys.stdout.write(f"docs/reference is out of date ({', '.join(found)}): run `make reference`\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
