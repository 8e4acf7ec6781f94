"""One owner per folder: an advisory lock that the kernel drops when its holder dies, with the holder's pid inside.

A lock file left behind by kill -9 holds nothing; whoever comes next simply takes it.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from strata.errors import DataDirInUse, InvalidConfig

__all__ = ["FolderLock"]


class FolderLock:
    """Held from `acquire` to `release`. `purpose` names the holder in the error a second one gets."""

    def __init__(self, folder: Path, purpose: str) -> None:
        self._path = folder / f"{purpose}.lock"
        self._purpose = purpose
        self._fd: int | None = None

    def acquire(self) -> None:
        """Creates the folder if need be. Raises DataDirInUse with the owner's pid."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InvalidConfig(
                f"the data folder {self._path.parent} cannot be used: {error.strerror}",
                hint="Give a folder you may write to with --data-dir.",
            ) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            raise DataDirInUse(f"{self._path.parent} is in use by another {self._purpose}, pid {owner}") from None
        if not _still_named(fd, self._path):  # its last owner removed it between our open and our lock
            os.close(fd)
            self.acquire()
            return
        with contextlib.suppress(OSError):  # on a full disk the lock holds without a name in it
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd

    def release(self) -> None:
        """Removes the file while still holding it, so that no other owner's file can be removed."""
        if self._fd is None:
            return
        self._path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = None


def _still_named(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
