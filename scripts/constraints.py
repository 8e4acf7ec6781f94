"""Resolves '.[server,dev]' anew and writes the exact versions to constraints.txt: names and versions, never a host.

Projects of this repository are not pinned: their versions stand in their own files.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = {"strata-engine", "strata-runtime"}
HEADER = """\
# Exact versions of everything `make` installs; `make constraints` resolves them anew. torch is not here: only
# `make test-torch` wants it, and which build of it fits is the machine's affair.
"""


def resolve() -> list[str]:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run(
        [*command, "./engine", ".[server,dev]"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    found = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    return sorted(f"{each['name'].lower()}=={each['version']}" for each in found if each["name"] not in OURS)


def main() -> int:
    pins = resolve()
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(pins) + "\n", encoding="utf-8")
    sys.stdout.write(f"constraints.txt: {len(pins)} pins\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
