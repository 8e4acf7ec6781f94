"""The code blocks of our pages, and how one is run: against a cluster of the test, by one rule for its addresses."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster import Cluster

__all__ = ["PAGES", "ROOT", "Block", "block", "blocks", "environment", "here", "run"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_PARTS = re.compile(
    r"^(?P<marks>#+) (?P<heading>[^\n]+)$|^```(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fence: ```<language> <mark>. The mark is empty, `server`, or `no-run: <what it needs>`."""

    page: str
    heading: str
    language: str
    mark: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}: {self.heading}"


def blocks(page: Path) -> Iterator[Block]:
    heading = ""
    for part in _PARTS.finditer(page.read_text(encoding="utf-8")):
        if part["heading"]:
            heading = part["heading"]
            continue
        language, _, mark = part["info"].partition(" ")
        name = page.relative_to(ROOT).as_posix()
        yield Block(page=name, heading=heading, language=language, mark=mark, code=part["code"])


def block(page: str, heading: str) -> str:
    """The code of the one block below this heading that is run on its own."""
    (found,) = [one for one in blocks(ROOT / page) if one.heading == heading and not one.mark]
    return found.code


def here(code: str, cluster: Cluster) -> str:
    """With the addresses that pages name replaced by those of a cluster of the test."""
    http = cluster.endpoints["http"].removeprefix("http://")
    return code.replace("localhost:3000", http).replace("localhost:50051", cluster.endpoints["grpc"])


def environment(folder: Path) -> dict[str, str]:
    """Of a user whose data folder this is, with `strata` and `python` on the path."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STRATA_DATA_DIR": str(folder),
    }


def run(code: str, folder: Path, data_dir: Path, within_s: float = 60.0) -> str:
    """A shell block from its first line to its last, in this folder; what it printed."""
    command = ["bash", "-euo", "pipefail", "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment(data_dir), capture_output=True, text=True, timeout=within_s, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout
