"""Writes a stream past the page cache: as fast as the disk, with half the CPU time, and without evicting the data that
a training job reads. The caller makes it durable with a sync.
"""

import errno
import fcntl
import mmap
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress

import numpy as np

__all__ = ["BLOCK_BYTES", "DirectFile", "new_memory", "set_direct"]

BLOCK_BYTES = 8 << 20
_PAGE = 4096  # a multiple of every sector size in use
_WRITERS = 2  # the disk has the next block in hand when it is done with one (measured: a third writer adds nothing)
_NOT_HERE = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def set_direct(descriptor: int, *, direct: bool) -> bool:
    """Turns direct writes of an open file on or off; False where the file system has none."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT if direct else flags & ~os.O_DIRECT)
    except OSError as error:
        if error.errno in _NOT_HERE:
            return False
        raise
    return True


class DirectFile(AbstractContextManager["DirectFile"]):
    """An empty file in direct mode, filled from front to back by two threads.

    Bytes that lie on page boundaries are written from where they are, and must not change before `finish`; others are
    copied into blocks that do. Leaving the `with` block waits for writes under way, so that the file can be closed.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="checkpoint-write")
        self._pending: deque[tuple[Future[None], memoryview | None]] = deque()
        self._idle: list[memoryview] = []
        self._block: memoryview | None = None
        self._filled = 0
        self._position = 0  # in the file, of the first byte not handed to a writer

    def __exit__(self, *_: object) -> None:
        self._writers.shutdown(cancel_futures=True)

    def write(self, chunk: memoryview) -> None:
        if not self._filled and _address(chunk) % _PAGE == 0:
            whole = len(chunk) - len(chunk) % _PAGE
            self._hand_over(chunk[:whole], None)
            chunk = chunk[whole:]
        while len(chunk):
            if self._block is None:
                self._block = self._idle.pop() if self._idle else new_memory(BLOCK_BYTES)
            piece = chunk[: BLOCK_BYTES - self._filled]
            # numpy lets the other threads run while it copies; a memoryview would hold them all up.
            room = np.frombuffer(self._block, dtype=np.uint8)[self._filled : self._filled + len(piece)]
            np.copyto(room, np.frombuffer(piece, dtype=np.uint8))
            self._filled += len(piece)
            chunk = chunk[len(piece) :]
            if self._filled == BLOCK_BYTES:
                self._hand_over(self._block, self._block)
                self._block, self._filled = None, 0

    def finish(self) -> None:
        """Writes what is left, padded to a page and cut to size again, and waits for all of it."""
        size = self._position + self._filled
        if self._block is not None:
            padded = -(-self._filled // _PAGE) * _PAGE
            self._hand_over(self._block[:padded], None)
        while self._pending:
            self._settle()
        os.ftruncate(self._descriptor, size)

    def _hand_over(self, data: memoryview, block: memoryview | None) -> None:
        if not len(data):
            return
        while len(self._pending) > _WRITERS:
            self._settle()
        self._pending.append((self._writers.submit(_write, self._descriptor, data, self._position), block))
        self._position += len(data)

    def _settle(self) -> None:
        future, block = self._pending.popleft()
        future.result()
        if block is not None:
            self._idle.append(block)


def _write(descriptor: int, data: memoryview, position: int) -> None:
    done = 0
    while done < len(data):
        direct = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT  # asked before: the other thread may turn it off
        try:
            done += os.pwrite(descriptor, data[done:], position + done)
        except OSError as error:
            # A file system that takes the flag but not our alignment: the page cache takes anything.
            if error.errno != errno.EINVAL or not direct:
                raise
            set_direct(descriptor, direct=False)


def new_memory(size: int) -> memoryview:
    """Fresh pages, aligned, huge ones where there are such."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without transparent huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def _address(data: memoryview) -> int:
    if not len(data):
        return 0
    address: int = np.frombuffer(data, dtype=np.uint8).ctypes.data
    return address
