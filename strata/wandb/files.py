"""The files that a script saves: artifacts and copies. Kept whole in the data folder, counted."""

import glob
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from strata.errors import InvalidArgument

__all__ = ["RunFiles"]


class RunFiles:
    """A folder per run, below `files` of the data folder. Every write may raise OSError; callers count what is lost."""

    def __init__(self, data_dir: Path, run_id: str) -> None:
        self.folder = data_dir / "files" / run_id

    def totals(self) -> tuple[int, int]:
        """How many files lie there, those of earlier processes too, and their bytes."""
        sizes = [file.stat().st_size for file in _files(self.folder)]
        return len(sizes), sum(sizes)

    def write(self, name: str, content: bytes) -> dict[str, str | int]:
        """Keeps these bytes; returns what a reader needs to find and check them."""
        target = self._place(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return {"file": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def copy(self, source: Path, name: str) -> Path:
        target = self._place(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and target.samefile(source)):
            shutil.copyfile(source, target)
        return target

    def copy_all(self, pattern: str, base: str | Path | None) -> list[Path]:
        """The files that a path, a folder or a pattern names, with their places below `base`."""
        copied = []
        for found in sorted(glob.glob(os.fspath(pattern), recursive=True)):  # noqa: PTH207 - a pattern may be absolute
            for file in _files(Path(found)):
                beside = Path(base).resolve() if base is not None else Path(found).resolve().parent
                absolute = file.resolve()
                within = absolute.relative_to(beside) if absolute.is_relative_to(beside) else Path(file.name)
                copied.append(self.copy(file, within.as_posix()))
        return copied

    def _place(self, name: str) -> Path:
        target = (self.folder / name).resolve()
        if not target.is_relative_to(self.folder.resolve()):
            raise InvalidArgument(f"{name!r} is not inside the run's folder", hint="Give a name without `..`.")
        return target


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (file for file in sorted(path.rglob("*")) if file.is_file())
    elif path.is_file():
        yield path
