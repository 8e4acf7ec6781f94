"""The archives of tasks' code, as files of the data folder, known by their hash. They are durable before a task may
name them; those that nobody has used for the longest go first. Blocks: to be called on a thread.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from strata.errors import InvalidArgument, NotFound
from strata.types.code import MAX_ARCHIVE_BYTES, PART_BYTES, check_digest

__all__ = ["Archives"]

_KEPT = 32
_KEPT_BYTES = 8 * MAX_ARCHIVE_BYTES
_PART = ".part"
_PART_S = 3600.0  # after which an archive that was never completed goes


class Archives:
    """`needed` gives the hashes that tasks still name which are not over: these stay, whatever the limits."""

    def __init__(self, folder: Path, needed: Callable[[], Collection[str]]) -> None:
        self._folder = folder
        self._needed = needed

    def put(self, digest: str, total: int, offset: int, data: bytes) -> bool:
        """Takes one part; a part may come twice, and from several at once: its bytes are always the same. Returns
        whether the archive is complete. The part that completes it must make up the hash."""
        path = self._path(digest)
        if path.exists():
            os.utime(path)
            return True
        if not 0 < total <= MAX_ARCHIVE_BYTES:
            raise InvalidArgument(f"code {digest} has {total} bytes, {MAX_ARCHIVE_BYTES} are allowed")
        if not 0 <= offset <= total - len(data) or len(data) > PART_BYTES:
            raise InvalidArgument(f"a part of {len(data)} bytes at {offset} is none of code {digest}")
        if not data:
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(_PART)
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, data, offset)
            if offset + len(data) < total:
                return False
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._complete(part, digest)
        return True

    def _complete(self, part: Path, digest: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # somebody else who sent the same was first
            with part.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != digest:
                part.unlink(missing_ok=True)
                raise InvalidArgument(f"what came as code {digest} has the hash {found}", hint="Send it again.")
            part.rename(self._path(digest))
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._tidy()

    def get(self, digest: str, offset: int) -> tuple[bytes, int]:
        """A part from `offset` on, and the size of the whole."""
        path = self.check(digest)
        with path.open("rb") as file:
            file.seek(max(0, offset))
            return file.read(PART_BYTES), path.stat().st_size

    def check(self, digest: str) -> Path:
        """The file of an archive; one that was asked for is used. Raises NotFound."""
        path = self._path(digest)
        try:
            os.utime(path)
        except FileNotFoundError:
            raise NotFound(
                f"code {digest} is not kept here (any more)", hint="Submit the task anew: `strata run --sync`."
            ) from None
        return path

    def _path(self, digest: str) -> Path:
        return self._folder / check_digest(digest)

    def _tidy(self) -> None:
        """Removes what is beyond the limits, and parts that nobody completes."""
        needed, now = set(self._needed()), time.time()
        found = sorted(((path.stat(), path) for path in self._folder.iterdir()), key=lambda item: -item[0].st_mtime)
        number = size = 0
        for about, path in found:
            if path.suffix == _PART:
                if now - about.st_mtime > _PART_S:
                    path.unlink(missing_ok=True)
                continue
            number, size = number + 1, size + about.st_size
            if path.name not in needed and (number > _KEPT or size > _KEPT_BYTES):
                path.unlink(missing_ok=True)
