"""Peers live in virtualenvs of their own, made on demand and kept: their pins never touch ours.

The folder is `$STRATA_BENCH_VENVS`, or `~/.cache/strata-bench`. A peer that cannot install is a reason, not a crash.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PeerUnavailable", "PeerVenv", "ensure_venv", "venvs_root"]

INSTALL_TIMEOUT_S = 1_200
LIST_VERSIONS = (
    "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
)


class PeerUnavailable(Exception):
    """The peer cannot be installed here; the text says why and is shown beside the skipped variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerVenv:
    """A ready virtualenv: its interpreter and what is installed in it, by name."""

    python: Path
    versions: Mapping[str, str]


def venvs_root() -> Path:
    named = os.environ.get("STRATA_BENCH_VENVS")
    return Path(named) if named else Path.home() / ".cache" / "strata-bench"


def ensure_venv(requires: Sequence[str], root: Path | None = None) -> PeerVenv:
    """The virtualenv that holds exactly these requirements (and what they pull); blocks while pip installs.

    The stamp is written last, so an interrupted install is started over instead of trusted.
    """
    key = hashlib.sha256("\n".join([sys.version, *sorted(requires)]).encode()).hexdigest()[:16]
    folder = (root or venvs_root()) / key
    python = folder / "bin" / "python"
    stamp = folder / "installed.json"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PeerUnavailable(f"cannot create {folder.parent}: {error.strerror}") from error
        # Our own pip installs into it: a venv without one is made in a tenth of a second instead of four.
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *requires])
        stamp.write_text(_run([str(python), "-c", LIST_VERSIONS]), encoding="utf-8")
    return PeerVenv(python=python, versions=json.loads(stamp.read_text(encoding="utf-8")))


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailable(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise PeerUnavailable(_last_words(done.stderr or done.stdout))
    return done.stdout


def _last_words(output: str) -> str:
    """pip's last ERROR line says what is wrong; the lines after it are advice."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no output"])[-1]
