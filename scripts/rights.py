"""Writes the matrix in SECURITY.md from the table of rights, or says that it is out of date."""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from strata.trust.table import TABLE, Rule  # noqa: E402  found beside this script
from strata.trust.who import Who  # noqa: E402

__all__ = ["PAGE", "render", "written"]

PAGE = ROOT / "SECURITY.md"
_BLOCK = re.compile(r"(<!-- rights -->\n)(.*?)(<!-- end of rights -->)", re.DOTALL)


def render() -> str:
    """One row per method and route."""
    head = "| call | " + " | ".join(Who) + " |"
    lines = [head, "|---" * (1 + len(Who)) + "|"]
    for command, rule in TABLE.items():
        cells = " | ".join(_cell(rule, who) for who in Who)
        lines.append(f"| `{command}`{' ¹' if rule.costs else ''} | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(rule: Rule, who: Who) -> str:
    if who not in rule.may:
        return "–"
    return "its own" if who is Who.RANK and rule.own else "yes"


def written(page: str) -> str:
    """What the page shows now."""
    found = _BLOCK.search(page)
    return found[2] if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="mend the page")
    page = PAGE.read_text(encoding="utf-8")
    if parser.parse_args().write:
        page = _BLOCK.sub(lambda found: found[1] + render() + found[3], page)
        PAGE.write_text(page, encoding="utf-8")
    fresh = written(page) == render()
    sys.stdout.write("" if fresh else "SECURITY.md is out of date: run `make rights`\n")
    return 0 if fresh else 1


if __name__ == "__main__":
    sys.exit(main())
