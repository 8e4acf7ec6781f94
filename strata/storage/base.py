"""The interface of a checkpoint store: six methods with the same promises on a disk and in a bucket."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from strata.errors import InvalidArgument, StorageConflict

__all__ = ["Buffer", "HoldsUploads", "Listing", "ObjectStore", "StoredObject", "check_key", "honours_create"]

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One object: its key below the store's root, its size, and when it was last written (Unix seconds)."""

    key: str
    size: int
    modified_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One level of a store: the objects right under a prefix, and the folders (keys that end in '/'), both sorted."""

    objects: tuple[StoredObject, ...]
    folders: tuple[str, ...]


class ObjectStore(Protocol):
    """Named bytes that never change once written. Keys are relative and separated by '/'; a folder exists only as a
    part of keys.

    Every call blocks and may be made from any thread. A write is all or nothing: no reader ever sees a part of it, and
    when the call returns the bytes survive a power cut. The store itself retries temporary trouble (5xx, resets,
    timeouts); a StorageError means that retrying at once will not help.
    """

    uri: str
    parallel_reads: int
    """How many reads at once make sense here: the cores for a disk, enough to hide the latency of a network."""

    def put(self, key: str, data: Buffer, *, create: bool = False) -> None:
        """Writes one small object. With `create` it fails with StorageConflict when the key exists: exactly one of any
        number of racing callers succeeds (see `honours_create` for stores that break this)."""
        ...

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        """Writes one object of any size from chunks pulled one at a time, each used up before the call returns.
        `size` is that of the object in bytes, for a bucket gets parts that suit it; None when nobody knows.
        An exception out of `chunks` abandons the write and is raised again; nothing is left under the key."""
        ...

    def get(self, key: str) -> bytes:
        """One small object whole; StorageNotFound when there is none."""
        ...

    def read_into(self, key: str, offset: int, buffers: Sequence[memoryview]) -> int:
        """Fills writable byte buffers, in order, with the bytes from `offset`; returns how many there were (fewer than
        asked means that the object ends there)."""
        ...

    def list(self, prefix: str = "") -> Listing:
        """One level below `prefix` ('' or a key ending in '/'). Nothing there is no error."""
        ...

    def delete(self, key: str) -> None:
        """Removes an object, or with a trailing '/' all below it, half-written leftovers too. Gone already is fine.
        Some buckets go on listing an emptied folder for a while."""
        ...


@runtime_checkable
class HoldsUploads(Protocol):
    """A store where a killed writer leaves bytes that no listing shows (unfinished multipart uploads)."""

    def abort_uploads(self, older_than_s: float) -> int:
        """Throws away unfinished uploads that began longer ago than that; returns how many."""
        ...


def check_key(key: str, *, folder: bool = False) -> str:
    """Refuses keys that could leave the store's root; `folder` also allows '' and a trailing '/'."""
    body = key[:-1] if folder and key.endswith("/") else key
    if body or not folder:
        for part in body.split("/"):
            if part in ("", ".", "..") or "\0" in part or "\\" in part:
                raise InvalidArgument(f"{key!r} is not a valid storage key")
    return key


def honours_create(store: ObjectStore, key: str, data: Buffer) -> bool:
    """Writes `data` under `key` and returns whether the store refuses to create a key twice (rclone does not)."""
    try:
        store.put(key, data, create=True)
        store.put(key, data, create=True)
    except StorageConflict:
        return True
    return False
