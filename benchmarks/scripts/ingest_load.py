"""Loads an observatory as training processes do: TELEMETRY HTTP RATE SECONDS. A hundred senders, each a connection of
its own that reports like one of the SDK's: every 250 ms what was logged meanwhile as one ReportOnce, the next one when
the last is safe. Each logs its 50 metrics at every step; together they log RATE points a second. One sender more logs a
probe, whose points a browser waits for.

Prints `steady` when everything flows, and in the end what was accepted and what it took.
"""

import asyncio
import json
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import grpc
import numpy as np
import uvloop

from benchmarks.measure import cpu_seconds
from strata.client.batches import new_batch
from strata.protocol.generated.telemetry_pb2 import Batch, BatchAck
from strata.types.metrics import NO_DEVICE

SENDERS = 100
METRICS = 50
PROBE = "probe"
_INTERVAL_S = 0.25  # as strata/worker/reporter.py
_MAX_POINTS = 50_000
_RANDOM = np.random.default_rng(1).normal(size=2 * _MAX_POINTS).tobytes()


class Sender:
    """One training process. Messages are put together from bytes: it must not cost what a hundred processes would."""

    def __init__(self, address: str, run_id: str, metrics: int, steps_per_s: float) -> None:
        heads = Batch()
        for index in range(metrics):
            heads.series.add(index=index, run_id=run_id, metric=f"m{index}", host="host", device=NO_DEVICE)
        self._section = heads.SerializeToString()
        self._series = bytes(range(metrics))
        self._steps_per_s = steps_per_s
        self._step = 0
        # Every SDK has a connection of its own: channels with equal options would share one.
        self._channel = grpc.aio.insecure_channel(address, options=[("strata.sender", run_id)])
        self._report: Any = self._channel.unary_unary(
            "/strata.telemetry.Telemetry/ReportOnce", response_deserializer=BatchAck.FromString
        )
        self.accepted = 0
        self.acks: list[float] = []

    async def run(self, ending: asyncio.Event, offset_s: float) -> None:
        began = time.time()
        due = time.perf_counter() + offset_s
        while not ending.is_set():
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due = max(due + _INTERVAL_S, time.perf_counter())
            ready = int((time.time() - began) * self._steps_per_s)
            steps = range(self._step, min(ready, self._step + _MAX_POINTS // len(self._series)))
            if not steps:
                continue
            self._step = steps.stop
            sent = time.perf_counter()
            ack = await self._report(self._batch(steps, began), timeout=60)
            assert not ack.error_code, ack.error_message
            self.acks.append(time.perf_counter() - sent)
            self.accepted += ack.accepted_points
        await self._channel.close()

    def _batch(self, steps: range, began: float) -> bytes:
        count = len(self._series)
        start = int(steps.start % 1000) * 8
        columns = (
            self._series * len(steps),
            b"".join(varint(step) * count for step in steps),
            b"".join(varint(round((began + step / self._steps_per_s) * 1000)) * count for step in steps),
            _RANDOM[start : start + 8 * count * len(steps)],
        )
        points = b"".join(field(place, column) for place, column in enumerate(columns, 1))
        return field(1, new_batch().batch_id.encode()) + self._section + field(3, points)


class Browser:
    """Reads the stream of the probe's run and notes how old its points are when they come."""

    def __init__(self, http: str) -> None:
        self._address = urlsplit(http)
        self.delays: list[float] = []

    async def watch(self) -> None:
        reader, writer = await asyncio.open_connection(self._address.hostname, self._address.port, limit=1 << 24)
        target = f"/stream?topics=metrics&runs={PROBE}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {self._address.netloc}\r\n\r\n".encode())
        while line := await reader.readline():
            if line.startswith(b'data: {"new_series"'):
                now = time.time()
                for _, _, times, _ in json.loads(line[6:])["points"]:
                    self.delays += [now - at / 1000 for at in times]
        raise ConnectionError("the browser lost its stream")


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


async def main() -> None:
    telemetry, http, rate, seconds = sys.argv[1:5]
    pace = int(rate) / SENDERS / METRICS
    senders = [Sender(telemetry, f"run-{number}", METRICS, pace) for number in range(SENDERS)]
    senders.append(Sender(telemetry, PROBE, 1, 50.0))
    browser, ending = Browser(http), asyncio.Event()
    watching = asyncio.create_task(browser.watch())
    sending = [
        asyncio.create_task(sender.run(ending, _INTERVAL_S * number / len(senders)))
        for number, sender in enumerate(senders)
    ]
    await asyncio.sleep(2.0)  # every series is known, every connection is open
    sys.stdout.write("steady\n")
    sys.stdout.flush()
    cpu, start = cpu_seconds(), time.perf_counter()
    before = sum(sender.accepted for sender in senders)
    browser.delays.clear()
    for sender in senders:
        sender.acks.clear()
    await asyncio.sleep(float(seconds))
    elapsed = time.perf_counter() - start
    assert not watching.done(), watching
    acks = np.array([ack for sender in senders for ack in sender.acks])
    delays = np.array(browser.delays or [float(seconds)])
    figures = {
        "acked_per_s": (sum(sender.accepted for sender in senders) - before) / elapsed,
        "ack_p50_s": float(np.quantile(acks, 0.5)),
        "ack_p99_s": float(np.quantile(acks, 0.99)),
        "to_browser_p50_s": float(np.quantile(delays, 0.5)),
        "to_browser_p95_s": float(np.quantile(delays, 0.95)),
        "load_cores": (cpu_seconds() - cpu) / elapsed,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    ending.set()
    await asyncio.gather(*sending)
    sys.stdout.write(json.dumps({"accepted": sum(sender.accepted for sender in senders)}) + "\n")


if __name__ == "__main__":
    uvloop.run(main())
