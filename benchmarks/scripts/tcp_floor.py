"""The least that any coordinator in Python must do: a bare TCP server for the same client and the same bytes, on the
loop of asyncio or on uvloop: `tcp_floor.py PARTICIPANTS LOOP BYTES`.

It answers every DATA frame at once (0), or those of a barrier when so many have come; if it is asked to, only after so
many bytes are on the disk. No HTTP/2, no protobuf, no state.
"""

import asyncio
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import uvloop

from benchmarks.scripts.grpc_wire import data_frame
from strata.heap import keep_freed

BARRIER = b"\x22"  # field 4 of RankWords: the first byte of an arrival
FILE_BYTES = 8 << 20  # of zeros, over which is written: a file that grows takes longer


class Disk:
    """A file, written on a thread of its own."""

    def __init__(self, size: int) -> None:
        self._file, path = tempfile.mkstemp(prefix="strata-bench-")
        Path(path).unlink()
        os.write(self._file, bytes(FILE_BYTES))
        os.fsync(self._file)
        self._data, self._at = os.urandom(size), 0
        self._thread = ThreadPoolExecutor(1)

    async def commit(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._commit)

    def _commit(self) -> None:
        os.pwrite(self._file, self._data, self._at)
        os.fdatasync(self._file)
        self._at = (self._at + len(self._data)) % (FILE_BYTES - len(self._data))


class Floor(asyncio.Protocol):
    waiting: ClassVar[list[asyncio.Transport]] = []
    participants = 0
    disk: ClassVar[Disk | None] = None
    committing: ClassVar[set[asyncio.Task[None]]] = set()
    answer = data_frame(1, BARRIER + b"x" * 60)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP gives no less
        self._transport = transport
        self._buffer = b""
        self._preface = 24

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        at, size = min(self._preface, len(buffer)), len(buffer)
        self._preface -= at
        while size - at >= 9:
            end = at + 9 + int.from_bytes(buffer[at : at + 3], "big")
            if end > size:
                break
            if buffer[at + 3] == 0 and end > at + 14:
                self._on_message(buffer[at + 14 : at + 15])
            at = end
        self._buffer = buffer[at:]

    def _on_message(self, first: bytes) -> None:
        if not self.participants:
            self._transport.write(self.answer)
        elif first == BARRIER:
            self.waiting.append(self._transport)
            if len(self.waiting) < self.participants:
                return
            if self.disk is None:
                self._release()
            else:
                task = asyncio.create_task(self._commit(self.disk))
                self.committing.add(task)
                task.add_done_callback(self.committing.discard)

    async def _commit(self, disk: Disk) -> None:
        await disk.commit()
        self._release()

    def _release(self) -> None:
        for transport in self.waiting:
            transport.write(self.answer)
        self.waiting.clear()


async def serve(participants: int, size: int) -> None:
    Floor.participants = participants
    Floor.disk = Disk(size) if size else None
    server = await asyncio.get_running_loop().create_server(Floor, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# asyncio reads into 256 KB. Whether the C library asks the system for them each time, which makes a floor three times
# as slow, depends on what the process has freed before: here it never does.
keep_freed()
run = uvloop.run if sys.argv[2] == "uvloop" else asyncio.run
run(serve(int(sys.argv[1]), int(sys.argv[3])))
