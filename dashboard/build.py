"""Builds the dashboard into a folder when its sources changed. Standard library only: make and the build hook load it.

Never touches the network when the stamp in the output folder matches the sources.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["BuildFailed", "build", "source_hash"]

HERE = Path(__file__).resolve().parent
DEFAULT_OUT = HERE.parent / "strata" / "observatory" / "web"
FILES = ("index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json")
FOLDERS = ("src", "public")
TAIL_LINES = 20


class BuildFailed(Exception):
    """npm is missing or one of its steps failed; the message is fit to print."""


def source_hash(root: Path = HERE) -> str:
    """Hash of everything that the bundle is made from, names included."""
    digest = hashlib.sha256()
    paths = [root / name for name in FILES]
    for folder in FOLDERS:
        paths += sorted(path for path in (root / folder).rglob("*") if path.is_file())
    for path in paths:
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build(out_dir: Path = DEFAULT_OUT) -> bool:
    """Build into `out_dir`; True when it was rebuilt, False when it was up to date. Raises BuildFailed."""
    out_dir = out_dir.resolve()
    stamp = out_dir / ".stamp"
    wanted = source_hash()
    if stamp.is_file() and stamp.read_text() == wanted and (out_dir / "index.html").is_file():
        return False
    npm = shutil.which("npm")
    if npm is None:
        raise BuildFailed("npm was not found: install Node 20.19 or newer to build the dashboard")
    _install(npm)
    _step([npm, "run", "build", "--", "--outDir", str(out_dir), "--emptyOutDir"])
    stamp.write_text(wanted)
    return True


def _install(npm: str) -> None:
    # The lock's hash lies inside node_modules, so deleting that folder also forgets it.
    marker = HERE / "node_modules" / ".strata-lock"
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    if marker.is_file() and marker.read_text() == wanted:
        return
    # `npm install`, not `npm ci`: npm 11 drops other platforms' binaries from the lock, and its own `ci` then refuses.
    _step([npm, "install", "--no-audit", "--no-fund"])
    marker.write_text(hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest())


def _step(command: list[str]) -> None:
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-TAIL_LINES:])
        raise BuildFailed(f"`npm {' '.join(command[1:])}` failed with code {done.returncode}\n{tail}")


def main() -> int:
    out_dir = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_OUT
    try:
        rebuilt = build(out_dir)
    except BuildFailed as error:
        sys.stderr.write(f"dashboard: {error}\n")
        return 1
    sys.stdout.write(f"dashboard: {'built into' if rebuilt else 'up to date in'} {out_dir}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
