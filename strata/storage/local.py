"""A store in a folder of a local or shared file system: write aside, fsync, rename, fsync the folder.

A crash at any instruction leaves either the whole object or none; leftovers are hidden from `list`.
"""

import contextlib
import errno
import itertools
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from strata.datadir import nearest_folder
from strata.errors import StorageAccessDenied, StorageConflict, StorageError, StorageFull, StorageNotFound
from strata.storage.base import Buffer, Listing, StoredObject, check_key
from strata.storage.direct import BLOCK_BYTES, DirectFile, set_direct

__all__ = ["LocalStore"]

_TEMPORARY = ".part"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}
_WRITE_BACK_BYTES = 16 << 20
_MAX_VECTOR = 512  # below IOV_MAX (1024) of Linux


class LocalStore:
    """Objects are plain files under `root`, so any tool can read them."""

    parallel_reads = 4

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).expanduser().absolute()
        self.uri = str(self.root)

    def put(self, key: str, data: Buffer, *, create: bool = False) -> None:
        with _translated(self.uri, key):
            target = self._prepare(key)
            temporary = self._write_aside(target, iter((memoryview(data),)))
            try:
                if create:
                    self._link(temporary, target, data)
                else:
                    temporary.rename(target)
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(target.parent)

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        del size  # every size is written alike
        with _translated(self.uri, key):
            target = self._prepare(key)
            temporary = self._write_aside(target, iter(chunks))
            temporary.rename(target)
            _sync_folder(target.parent)

    def get(self, key: str) -> bytes:
        with _translated(self.uri, key):
            return self._path(key).read_bytes()

    def read_into(self, key: str, offset: int, buffers: Sequence[memoryview]) -> int:
        with _translated(self.uri, key):
            descriptor = os.open(self._path(key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_vector(descriptor, offset, buffers)
            finally:
                os.close(descriptor)

    def list(self, prefix: str = "") -> Listing:
        check_key(prefix, folder=True)
        objects: list[StoredObject] = []
        folders: list[str] = []
        with _translated(self.uri, prefix):
            try:
                entries = os.scandir(self.root / prefix)
            except (FileNotFoundError, NotADirectoryError):
                return Listing(objects=(), folders=())
            with entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{prefix}{entry.name}/")
                    elif not (entry.name.startswith(".") and entry.name.endswith(_TEMPORARY)):
                        with contextlib.suppress(FileNotFoundError):  # deleted by a sibling while we look
                            status = entry.stat()
                            key = prefix + entry.name
                            objects.append(StoredObject(key=key, size=status.st_size, modified_at=status.st_mtime))
        return Listing(objects=tuple(sorted(objects, key=lambda found: found.key)), folders=tuple(sorted(folders)))

    def delete(self, key: str) -> None:
        check_key(key, folder=True)
        target = self.root / key
        with _translated(self.uri, key), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if key.endswith("/"):
                shutil.rmtree(target)
            else:
                target.unlink()
            _sync_folder(target.parent)

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _prepare(self, key: str) -> Path:
        target = self._path(key)
        _make_folders(target.parent)
        return target

    def _write_aside(self, target: Path, chunks: Iterator[memoryview]) -> Path:
        """Everything durable under a hidden name; on trouble the half-written file goes (a full disk needs it)."""
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_TEMPORARY}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            try:
                _write_stream(descriptor, chunks)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _link(self, temporary: Path, target: Path, data: Buffer) -> None:
        """link() fails on an existing name and shows the whole content at once: the create-once of POSIX."""
        try:
            os.link(temporary, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # No hard links here (some network mounts). O_EXCL still lets only one win; a crash inside leaves a short
            # object, which every reader of ours detects by its hash.
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                _write_all(descriptor, memoryview(data))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _write_stream(descriptor: int, chunks: Iterator[memoryview]) -> None:
    """Small ones through the page cache, where a write costs least; large ones past it, where that is possible.

    Measured (512 MiB): the median of both is the disk's speed, but through the cache single saves take up to three
    times as long, and twice the CPU time."""
    first: list[memoryview] = []
    size = 0
    for chunk in chunks:
        first.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            break
    whole = itertools.chain(first, chunks)
    if size < BLOCK_BYTES or not set_direct(descriptor, direct=True):
        _write_cached(descriptor, whole)
        return
    with DirectFile(descriptor) as file:
        for chunk in whole:
            file.write(chunk)
        file.finish()


def _write_cached(descriptor: int, chunks: Iterable[memoryview]) -> None:
    """Tells the kernel after every few chunks that they will not be read soon: it begins to write them back at once,
    while we copy the next ones."""
    written = started = 0
    for chunk in chunks:
        _write_all(descriptor, chunk)
        written += len(chunk)
        if written - started >= _WRITE_BACK_BYTES:
            os.posix_fadvise(descriptor, started, written - started, os.POSIX_FADV_DONTNEED)
            started = written


def _write_all(descriptor: int, chunk: memoryview) -> None:
    done = 0
    while done < len(chunk):
        done += os.write(descriptor, chunk[done:])


def _read_vector(descriptor: int, offset: int, buffers: Sequence[memoryview]) -> int:
    pending = [buffer for buffer in buffers if len(buffer)]
    done = 0
    while pending:
        count = os.preadv(descriptor, pending[:_MAX_VECTOR], offset + done)
        if count == 0:
            break
        done += count
        while pending and count >= len(pending[0]):
            count -= len(pending.pop(0))
        if count:
            pending[0] = pending[0][count:]
    return done


def _make_folders(folder: Path) -> None:
    """mkdir -p whose result survives a power cut: each new name is synced into its parent."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _translated(root: str, key: str) -> Iterator[None]:
    """The operating system's refusals as ours, with the path in the message."""
    try:
        yield
    except FileExistsError as error:
        raise StorageConflict(f"{root}/{key} exists already") from error
    except FileNotFoundError as error:
        raise StorageNotFound(f"no object {root}/{key}") from error
    except PermissionError as error:
        hint = f"Give this user the right to read and write {nearest_folder(Path(root))}."
        raise StorageAccessDenied(f"no access to {root}/{key}: {error.strerror}", hint=hint) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"no space left for {root}/{key}") from error
        raise StorageError(f"{root}/{key}: {error.strerror or error}") from error
