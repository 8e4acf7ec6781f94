"""Puts the engine of `engine` into the environment that runs this, unless it is there: pip builds a folder again
whenever it is named.

Other packages of chDB write into the same folder. They go first: removed later, they would take its files along.
"""

import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OTHERS = ("chdb", "chdb-core", "chdb-core-lite")
PIP = [sys.executable, "-m", "pip"]
QUIET = ["-q", "--disable-pip-version-check"]


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def is_whole(package: Distribution | None, version: str) -> bool:
    """Of this version, and nobody took a file away. What Python compiled may go and come."""
    if package is None or package.version != version:
        return False
    return all(Path(file.locate()).exists() for file in package.files or () if file.suffix != ".pyc")


def main() -> int:
    project = tomllib.loads((ROOT / "engine" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    others = [name for name in OTHERS if installed(name)]
    if others:
        sys.stdout.write(f"setup: removing {', '.join(others)}: the engine is {project['name']} now\n")
        sys.stdout.flush()
        subprocess.run([*PIP, "uninstall", "-y", *QUIET, *others], check=True)
    if is_whole(installed(project["name"]), project["version"]):
        return 0
    sys.stdout.write(f"setup: {project['name']} {project['version']}\n")
    sys.stdout.flush()
    return subprocess.run([*PIP, "install", *QUIET, "--no-deps", str(ROOT / "engine")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
