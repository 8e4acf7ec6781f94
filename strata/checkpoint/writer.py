"""Bytes on their way to a store: hashed per chunk while they are written, from memory at hand or pushed piece by
piece."""

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

import xxhash

from strata.checkpoint import faults
from strata.checkpoint.manifest import CHUNK_BYTES, digest_of
from strata.errors import CheckpointError, InvalidArgument
from strata.storage.base import Buffer, ObjectStore
from strata.storage.uri import open_store

__all__ = ["AsyncCheckpointWriter", "HashedStream", "WrittenObject"]

_MIB = 1 << 20
_MANY_PIECES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """What came to lie under a key: its size and the hash of each chunk, in order."""

    key: str
    size: int
    chunks: tuple[str, ...]

    @property
    def digest(self) -> str:
        return digest_of("".join(self.chunks).encode())


class HashedStream:
    """Passes buffers on in chunks while another thread hashes the same chunk: hashing hides behind the write.

    Measured: hashing in line costs a third of the disk's throughput, beside it nothing that shows.
    """

    def __init__(self, buffers: Iterable[memoryview], hasher: ThreadPoolExecutor) -> None:
        self.sent_bytes = 0
        self._buffers = buffers
        self._hasher = hasher
        self._hashes: list[Future[str]] = []

    def __iter__(self) -> Iterator[memoryview]:
        for pieces in _in_chunks(self._buffers):
            faults.reach("data_part")
            # Thousands of tiny arrays: one copy of a chunk is cheaper than as many writes.
            sent = [memoryview(b"".join(pieces))] if len(pieces) > _MANY_PIECES else pieces
            self._hashes.append(self._hasher.submit(_hash, sent))
            for piece in sent:
                yield piece
                self.sent_bytes += len(piece)
        faults.reach("data_sent")

    def chunks(self) -> tuple[str, ...]:
        return tuple(future.result() for future in self._hashes)


def _hash(pieces: list[memoryview]) -> str:
    state = xxhash.xxh3_128()
    for piece in pieces:
        state.update(piece)
    return str(state.hexdigest())


def _in_chunks(buffers: Iterable[memoryview]) -> Iterator[list[memoryview]]:
    pieces: list[memoryview] = []
    room = CHUNK_BYTES
    for buffer in buffers:
        rest = buffer.cast("B") if buffer.format != "B" or buffer.ndim != 1 else buffer
        while len(rest):
            pieces.append(rest[:room])
            room -= len(pieces[-1])
            rest = rest[len(pieces[-1]) :]
            if room == 0:
                yield pieces
                pieces, room = [], CHUNK_BYTES
    if pieces:
        yield pieces


class AsyncCheckpointWriter(AbstractContextManager["AsyncCheckpointWriter"]):
    """A buffered stream to one object of any size: `write` returns once the bytes are taken, uploads run behind it.

    At most `max_buffer_bytes` wait in memory; a full buffer makes `write` wait. An upload that failed is raised by
    the next `write` or by `finish`. Nothing is visible under the key before `finish` returns; leaving a `with` block
    by an exception abandons the object.
    """

    def __init__(
        self, target: ObjectStore | str | os.PathLike[str], key: str, *, max_buffer_bytes: int = 128 * _MIB
    ) -> None:
        if max_buffer_bytes < CHUNK_BYTES:
            raise InvalidArgument(f"max_buffer_bytes is {max_buffer_bytes}; it must be {CHUNK_BYTES} or more")
        self.key = key
        self._store = open_store(target) if isinstance(target, str | os.PathLike) else target
        self._pending: queue.Queue[memoryview | None] = queue.Queue(maxsize=max_buffer_bytes // CHUNK_BYTES)
        self._block = bytearray()
        self._error: BaseException | None = None
        self._abandoned = threading.Event()
        self._done: WrittenObject | None = None
        self._thread = threading.Thread(target=self._upload, name=f"checkpoint-writer {key}", daemon=True)
        self._thread.start()

    def write(self, data: Buffer) -> int:
        """Takes the bytes; `data` may be changed as soon as this returns. Immutable bytes are not copied."""
        self._check_open()
        if self._done is not None:
            raise CheckpointError(f"{self.key} is finished; open another writer for more")
        view = memoryview(data).cast("B")
        if isinstance(data, bytes) and not self._block and len(view) >= CHUNK_BYTES:
            whole = len(view) - len(view) % CHUNK_BYTES
            for start in range(0, whole, CHUNK_BYTES):
                self._push(view[start : start + CHUNK_BYTES])
            view = view[whole:]
        for start in range(0, len(view), CHUNK_BYTES):
            self._block += view[start : start + CHUNK_BYTES]
            if len(self._block) >= CHUNK_BYTES:
                full, self._block = self._block, bytearray(self._block[CHUNK_BYTES:])
                self._push(memoryview(full)[:CHUNK_BYTES])
        return memoryview(data).nbytes

    def finish(self) -> WrittenObject:
        """Waits until the object is complete and durable. May be called again."""
        if self._done is None:
            self._check_open()
            if self._block:
                self._push(memoryview(self._block))
            self._push(None)
            self._thread.join()
            if self._error is not None:
                raise self._error
        assert self._done is not None
        return self._done

    def abort(self) -> None:
        """Gives the object up; what was uploaded is discarded."""
        if self._done is None:
            self._abandoned.set()
            self._wake()
            self._thread.join()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.finish()
        else:
            self.abort()

    def _push(self, block: memoryview | None) -> None:
        while True:
            self._check_open()
            try:
                self._pending.put(block, timeout=0.2)  # wakes to notice an upload that died with a full queue
                return
            except queue.Full:
                continue

    def _wake(self) -> None:
        try:
            self._pending.put_nowait(None)
        except queue.Full:
            return  # the thread is busy with the queue and sees the flag at its next block

    def _pulled(self) -> Iterator[memoryview]:
        while True:
            block = self._pending.get()
            if self._abandoned.is_set():
                raise CheckpointError(f"the upload of {self.key} was given up")
            if block is None:
                return
            yield block

    def _upload(self) -> None:
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="checkpoint-hash") as hasher:
                stream = HashedStream(self._pulled(), hasher)
                self._store.put_stream(self.key, stream)
                self._done = WrittenObject(key=self.key, size=stream.sent_bytes, chunks=stream.chunks())
        except BaseException as error:  # carried to the caller's thread by _check_open
            self._error = error

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error
        if self._abandoned.is_set():
            raise CheckpointError(f"the upload of {self.key} was given up")
