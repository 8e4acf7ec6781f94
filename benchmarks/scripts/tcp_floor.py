"""The least that any coordinator in Python must do: a bare TCP server for the same client and the same bytes, on the
loop of asyncio or on uvloop: `tcp_floor.py PARTICIPANTS LOOP`.

It answers every DATA frame at once (0), or those of a barrier when so many have come. No HTTP/2, no protobuf, no state.
"""

import asyncio
import sys
from typing import ClassVar

import uvloop

from benchmarks.scripts.grpc_wire import data_frame

BARRIER = b"\x22"  # field 4 of RankWords: the first byte of an arrival


class Floor(asyncio.Protocol):
    waiting: ClassVar[list[asyncio.Transport]] = []
    participants = 0
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
            if len(self.waiting) == self.participants:
                for transport in self.waiting:
                    transport.write(self.answer)
                self.waiting.clear()


async def serve(participants: int) -> None:
    Floor.participants = participants
    server = await asyncio.get_running_loop().create_server(Floor, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


run = uvloop.run if sys.argv[2] == "uvloop" else asyncio.run
run(serve(int(sys.argv[1])))
