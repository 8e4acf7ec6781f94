"""Loads an observatory: TELEMETRY HTTP RATE SECONDS CLIENTS. RATE points a second over one gRPC stream, one point of
each of 5,000 series per batch, and CLIENTS browsers that watch one run each. Prints what was accepted, what it took.

SECONDS 0 means until its standard input closes; it prints `steady` when everything flows.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import grpc
import numpy as np
import uvloop

from benchmarks.measure import cpu_seconds
from strata.protocol.generated.telemetry_pb2 import Batch, BatchAck

SERIES = 5_000
PER_RUN = 50
PROBE = "probe"
_DELTA = b"event: delta"


class Sender(threading.Thread):
    """Messages are put together from bytes: it stands for many machines, and must not cost what they would."""

    def __init__(self, address: str, rate: int) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._pause_s = SERIES / rate
        self._ending = threading.Event()
        self.accepted = 0
        self.began = 0.0
        self.took_s = 0.0

    def run(self) -> None:
        self.began = time.perf_counter()
        with grpc.insecure_channel(self._address) as channel:
            report: Any = channel.stream_stream(
                "/strata.telemetry.Telemetry/Report", response_deserializer=BatchAck.FromString
            )
            for ack in report(self._batches()):
                assert not ack.error_code, ack.error_message
                self.accepted += ack.accepted_points
                self.took_s = time.perf_counter() - self.began

    def end(self) -> None:
        self._ending.set()
        self.join()

    def _batches(self) -> Iterator[bytes]:
        heads = Batch()
        for index in range(SERIES):
            heads.series.add(index=index, run_id=f"run-{index // PER_RUN}", metric=f"m{index % PER_RUN}", device=65535)
        heads.series.add(index=SERIES, run_id=PROBE, metric=PROBE, device=65535)
        section, count, number = heads.SerializeToString(), SERIES + 1, 0
        series = b"".join(map(_varint, range(count)))
        values = np.random.default_rng(1).normal(size=count).tobytes()
        start = time.perf_counter()
        while not self._ending.is_set():
            now = time.time_ns() // 1_000_000
            columns = (series, _varint(number) * count, _varint(now) * count, values)
            points = b"".join(_field(place, column) for place, column in enumerate(columns, 1))
            yield _field(1, b"b%d" % number) + section + _field(3, points)
            number += 1
            time.sleep(max(0.0, start + number * self._pause_s - time.perf_counter()))


class Browsers:
    """Connections that read a stream and count its deltas; one more watches the probe's delay."""

    def __init__(self, http: str, count: int) -> None:
        self._address = urlsplit(http)
        self._count = count
        self.deltas = [0] * count
        self.delays: list[float] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        self._tasks.append(asyncio.create_task(self._watch_probe()))
        for number in range(self._count):
            self._tasks.append(asyncio.create_task(self._read(number)))
            if number % 50 == 49:
                await asyncio.sleep(0.05)

    def check(self) -> None:
        """Raises when a connection ended before its time."""
        for task in self._tasks:
            assert not task.done(), f"a browser lost its stream: {task}"

    async def _read(self, number: int) -> None:
        reader = await self._connect(f"run-{number % (SERIES // PER_RUN)}")
        tail = b""
        while data := await reader.read(262_144):
            self.deltas[number] += (tail + data).count(_DELTA)
            tail = data[-len(_DELTA) + 1 :]

    async def _watch_probe(self) -> None:
        reader = await self._connect(PROBE)
        while line := await reader.readline():
            if line.startswith(b'data: {"new_series"'):
                now = time.time()
                for _, _, times, _ in json.loads(line[6:])["points"]:
                    self.delays += [now - at / 1000 for at in times]

    async def _connect(self, run_id: str) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(self._address.hostname, self._address.port, limit=1 << 24)
        host = self._address.netloc
        self._writers.append(writer)  # one that is forgotten closes its connection
        writer.write(f"GET /stream?topics=metrics&runs={run_id} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return reader


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


async def main() -> None:
    telemetry, http, rate, seconds, clients = sys.argv[1:6]
    browsers, sender = Browsers(http, int(clients)), Sender(telemetry, int(rate))
    sender.start()
    await browsers.open()
    await asyncio.sleep(2.0)  # caches fill, every connection has its first picture
    sys.stdout.write("steady\n")
    sys.stdout.flush()
    cpu, start = cpu_seconds(), time.perf_counter()
    browsers.delays.clear()
    deltas, accepted = list(browsers.deltas), sender.accepted
    if float(seconds):
        await asyncio.sleep(float(seconds))
    else:
        await asyncio.to_thread(sys.stdin.read)
    elapsed = time.perf_counter() - start
    browsers.check()
    per_client = [(after - before) / elapsed for before, after in zip(deltas, browsers.deltas, strict=True)]
    delays = np.array(browsers.delays or [0.0])
    figures = {
        "elapsed_s": elapsed,
        "points_per_s": (sender.accepted - accepted) / elapsed,
        "load_cores": (cpu_seconds() - cpu) / elapsed,
        "to_browser_p50_s": float(np.quantile(delays, 0.5)),
        "to_browser_p95_s": float(np.quantile(delays, 0.95)),
        "to_browser_max_s": float(delays.max()),
        "least_deltas_per_s": min(per_client, default=0.0),
    }
    await asyncio.to_thread(sender.end)
    sys.stdout.write(json.dumps({**figures, "accepted": sender.accepted}) + "\n")


uvloop.run(main())
