"""Local copies of far files, and small notes about any file, keyed by a checksum of (address, size, version).

Several processes may share a folder: a file appears whole by one rename, and no lock is left behind by a crash.
"""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from strata.errors import DataError

__all__ = ["LocalCache", "default_cache_dir"]

_CHUNK = 8 << 20
Fetch = Callable[[int, memoryview], int]


def default_cache_dir() -> Path:
    """The user's cache folder. Nothing is created until something is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "strata" / "data"


class LocalCache:
    """At most `limit_bytes` of files; the longest unused go first. A file that is being read stays readable (POSIX)."""

    def __init__(self, folder: Path, limit_bytes: int = 64 << 30) -> None:
        self._folder = folder
        self._limit = limit_bytes

    def get(self, key: str, size: int, fetch: Fetch) -> Path:
        """The local copy, made with `fetch(offset, buffer) -> bytes read` when it is not there yet."""
        path = self._folder / "files" / key
        if path.exists() and path.stat().st_size == size:
            os.utime(path)
            return path
        self._make_room(path.parent, size)
        _write(path, lambda file: _copy_all(file, size, fetch, path))
        return path

    def note(self, key: str) -> dict[str, Any] | None:
        """The note under a key, or None. A note that cannot be read counts as none, since it only saves work."""
        try:
            found = json.loads((self._folder / "notes" / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put_note(self, key: str, note: dict[str, Any]) -> None:
        _write(self._folder / "notes" / f"{key}.json", lambda file: file.write(json.dumps(note).encode()))

    def _make_room(self, folder: Path, size: int) -> None:
        if not folder.exists():
            return
        kept = sorted(_stats(folder), key=lambda item: item[0])
        total = sum(held for _, held, _ in kept) + size
        for _, held, path in kept:
            if total <= self._limit:
                return
            path.unlink(missing_ok=True)
            total -= held


def _stats(folder: Path) -> list[tuple[float, int, Path]]:
    found = []
    for path in folder.iterdir():
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # another process made room at the same time
        found.append((status.st_mtime, status.st_size, path))
    return found


def _write(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """A whole file or none: it gets its name when `fill` is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            fill(file)
        os.replace(temporary, path)  # noqa: PTH105  # both are names, not Paths
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108  # as above
        raise


def _copy_all(file: BinaryIO, size: int, fetch: Fetch, path: Path) -> None:
    buffer = memoryview(bytearray(min(_CHUNK, max(size, 1))))
    offset = 0
    while offset < size:
        count = fetch(offset, buffer[: min(len(buffer), size - offset)])
        if not count:
            raise DataError(f"the file ended after {offset} of {size} bytes while it was copied", file=str(path))
        file.write(buffer[:count])
        offset += count
