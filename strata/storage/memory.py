"""A store in this process's memory, for tests and for trying things out. It keeps every promise except that the bytes
survive.
"""

import time
from collections.abc import Iterable, Sequence
from threading import Lock

from strata.errors import StorageConflict, StorageNotFound
from strata.storage.base import Buffer, Listing, StoredObject, check_key

__all__ = ["MemoryStore"]


class MemoryStore:
    """A dict behind a lock. Two stores never share anything, even under one URI."""

    parallel_reads = 2

    def __init__(self, uri: str = "memory://") -> None:
        self.uri = uri
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._lock = Lock()

    def put(self, key: str, data: Buffer, *, create: bool = False) -> None:
        check_key(key)
        with self._lock:
            if create and key in self._objects:
                raise StorageConflict(f"{self.uri}/{key} exists already")
            self._objects[key] = (bytes(data), time.time())

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        del size  # every size is written alike
        self.put(key, b"".join(bytes(chunk) for chunk in chunks))

    def get(self, key: str) -> bytes:
        with self._lock:
            found = self._objects.get(check_key(key))
        if found is None:
            raise StorageNotFound(f"no object {self.uri}/{key}")
        return found[0]

    def read_into(self, key: str, offset: int, buffers: Sequence[memoryview]) -> int:
        data = memoryview(self.get(key))[offset:]
        done = 0
        for buffer in buffers:
            piece = data[done : done + len(buffer)]
            buffer[: len(piece)] = piece
            done += len(piece)
        return done

    def list(self, prefix: str = "") -> Listing:
        check_key(prefix, folder=True)
        objects: list[StoredObject] = []
        folders: set[str] = set()
        with self._lock:
            for key, (data, modified_at) in self._objects.items():
                if not key.startswith(prefix):
                    continue
                name, slash, _ = key[len(prefix) :].partition("/")
                if slash:
                    folders.add(f"{prefix}{name}/")
                else:
                    objects.append(StoredObject(key=key, size=len(data), modified_at=modified_at))
        return Listing(objects=tuple(sorted(objects, key=lambda found: found.key)), folders=tuple(sorted(folders)))

    def delete(self, key: str) -> None:
        check_key(key, folder=True)
        with self._lock:
            for name in [key] if not key.endswith("/") else [k for k in self._objects if k.startswith(key)]:
                self._objects.pop(name, None)
