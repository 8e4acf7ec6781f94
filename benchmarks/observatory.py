"""The observability plane: ingest to the store, point to browser, snapshots, reads at ten million rows, log search."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import numpy as np
import psutil
import pyarrow as pa

from benchmarks.harness import Benchmark, Case, Target, Variant, floor, ours
from benchmarks.measure import stopwatch
from strata.clock import SystemClock
from strata.observatory.cache import SeriesCache
from strata.observatory.logbook import LogQuery, _sql
from strata.observatory.ring import Filter
from strata.observatory.runs import RunBook
from strata.observatory.series import SeriesTable
from strata.observatory.snapshot import SnapshotBuilder
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.sql import RUNS, SERIES
from strata.observatory.store.supervised import SupervisedStore
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from strata.types.metrics import SeriesKey

__all__ = ["BENCHMARK"]

_RATE = 100_000
_SECONDS = 8.0
_SERIES = 5_000
_PER_BATCH = 5_000
_CLIENTS = 500
_ROWS = 10_000_000
_LINES = 1_000_000

_MAIN = """
import sys
from pathlib import Path
from strata.config import Settings
from strata.observatory.server import run
run(Settings(data_dir=Path(sys.argv[1]), http_port=0, telemetry_port=0, coordinator_addr="127.0.0.1:1"))
"""


class Server:
    """A real observatory with its store process."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"}
        self._process = subprocess.Popen([sys.executable, "-c", _MAIN, str(folder)], env=environment)
        file = folder / "observatory.json"
        while not file.exists():
            time.sleep(0.05)
        endpoints = json.loads(file.read_text())
        self.http, self.telemetry = endpoints["http"], endpoints["telemetry"]
        while not self.status()["metric_store_ready"]:
            time.sleep(0.05)
        observatory = psutil.Process(self._process.pid)
        self._processes = [observatory, *observatory.children()]

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.http}/api/status") as response:  # noqa: S310 - our own server
            found: dict[str, Any] = json.load(response)
            return found

    def cpu_s(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@contextmanager
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        running = Server(Path(folder))
        try:
            yield running
        finally:
            running.stop()


def ingest() -> dict[str, float]:
    """100,000 points a second over one gRPC stream for 8 s, with a browser watching a probe series."""
    with server() as running:
        delays: list[float] = []
        watcher = threading.Thread(target=_watch, args=(running.http, delays), daemon=True)
        watcher.start()
        cpu, start = running.cpu_s(), time.perf_counter()
        with grpc.insecure_channel(running.telemetry) as channel:
            accepted = sum(ack.accepted_points for ack in TelemetryStub(channel).Report(_load()))
        sent_s = time.perf_counter() - start
        while running.status()["spool_backlog_bytes"]:
            time.sleep(0.02)
        stored_s = time.perf_counter() - start
        cores = (running.cpu_s() - cpu) / stored_s
    return {
        "wall_s": stored_s,
        "points_per_s": accepted / sent_s,
        "stored_per_s": accepted / stored_s,
        "cores": cores,
        "to_browser_p95_s": statistics.quantiles(delays, n=20)[18],
    }


def _load() -> Iterator[Batch]:
    batch = Batch()
    for index in range(_SERIES):
        batch.series.add(index=index, run_id=f"run-{index // 50}", metric=f"m{index % 50}", device=65535)
    batch.series.add(index=_SERIES, run_id="probe", metric="probe", device=65535)
    batch.points.series.extend([*range(_PER_BATCH), _SERIES])
    batch.points.value.extend(np.random.default_rng(1).normal(size=_PER_BATCH + 1).tolist())
    start, number = time.perf_counter(), 0
    while time.perf_counter() - start < _SECONDS:
        batch.batch_id = f"b{number}"
        del batch.points.step[:], batch.points.event_time_ms[:]
        batch.points.step.extend([number] * (_PER_BATCH + 1))
        batch.points.event_time_ms.extend([time.time_ns() // 1_000_000] * (_PER_BATCH + 1))
        yield batch
        number += 1
        time.sleep(max(0.0, start + number * _PER_BATCH / _RATE - time.perf_counter()))


def _watch(http: str, delays: list[float]) -> None:
    url = f"{http}/stream?runs=probe&topics=metrics"
    with urllib.request.urlopen(url) as response:  # noqa: S310 - our own server
        for line in response:
            if line.startswith(b'data: {"new_series"'):
                now = time.time()
                body = json.loads(line[6:])
                delays += [now - at / 1000 for _, _, times, _ in body["points"] for at in times]


def clients() -> dict[str, float]:
    """500 browsers at four deltas a second."""
    with server() as running:
        return asyncio.run(_clients(running))


async def _clients(running: Server) -> dict[str, float]:
    address = urlsplit(running.http)
    request = f"GET /stream?topics=metrics HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
    connections = [await asyncio.open_connection(address.hostname, address.port) for _ in range(_CLIENTS)]
    received = [0] * _CLIENTS

    async def read(number: int, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65_536):
            received[number] += data.count(b"event: delta")

    readers = []
    for number, (reader, writer) in enumerate(connections):
        writer.write(request)
        readers.append(asyncio.create_task(read(number, reader)))
    await asyncio.sleep(2)
    cpu, start = running.cpu_s(), time.perf_counter()
    async with grpc.aio.insecure_channel(running.telemetry) as channel:
        stub: Any = TelemetryStub(channel)
        for tick in range(20):
            batch = Batch(batch_id=f"t{tick}")
            batch.series.add(index=0, run_id="r", metric="loss", device=65535)
            batch.points.series.append(0)
            batch.points.step.append(tick)
            batch.points.value.append(1.0)
            await stub.ReportOnce(batch)
            await asyncio.sleep(0.25)
    await asyncio.sleep(0.6)
    elapsed, used = time.perf_counter() - start, running.cpu_s() - cpu
    for task in readers:
        task.cancel()
    for _, writer in connections:
        writer.close()
    slowest = min(received)
    return {
        "wall_s": elapsed,
        "cores": used / elapsed,
        "least_deltas": float(slowest),
        "most_deltas": float(max(received)),
    }


def snapshots(_: ExitStack) -> tuple[Variant, ...]:
    """100 runs of 50 metrics, 2,000 points each, already in the cache."""
    series, cache, runs = SeriesTable(), SeriesCache(), RunBook(SystemClock())
    numbers = np.array([series.intern(SeriesKey(f"run-{n // 50}", f"m{n % 50}")) for n in range(_SERIES)])
    rng, now = np.random.default_rng(1), time.time_ns() // 1_000_000
    for start in range(0, 2_000, 50):
        steps = np.tile(np.arange(start, start + 50), _SERIES)
        cache.apply(np.repeat(numbers, 50), steps, steps + now, rng.normal(size=len(steps)))
    rows = {"first_ms": now, "last_ms": now + 2_000, "top_step": 1_999, "points": 100_000, "series": 50}
    runs.from_store([{"run_id": f"run-{run}", **rows} for run in range(100)])

    def build() -> dict[str, float]:
        builder = SnapshotBuilder(series, cache, runs)
        with stopwatch() as watch:
            body = builder.build(Filter(), "epoch")
        return watch.values(size_bytes=len(body))

    body = SnapshotBuilder(series, cache, runs).build(Filter(), "epoch")
    return ours(build), floor("copy of the same bytes", lambda: bytearray(body))


def reads(stack: ExitStack) -> tuple[Variant, ...]:
    """The embedded engine with ten million points of 5,000 series."""
    loop, store = _open_store(stack)
    base = 1_794_000_000_000
    keys = np.arange(_SERIES, dtype=np.int32)
    words = [f"run-{n // 50}" for n in range(_SERIES)], [f"m{n % 50}" for n in range(_SERIES)]
    per_insert = 100
    for start in range(0, _ROWS // _SERIES, per_insert):
        steps = np.repeat(np.arange(start, start + per_insert, dtype=np.uint64), _SERIES)
        codes = pa.array(np.tile(keys, per_insert))
        table = pa.table(
            {
                "event_time": pa.array(base + steps.astype(np.int64) * 1000).cast(pa.timestamp("ms", tz="UTC")),
                "run_id": pa.DictionaryArray.from_arrays(codes, words[0]).cast(pa.string()),
                "metric": pa.DictionaryArray.from_arrays(codes, words[1]).cast(pa.string()),
                "step": pa.array(steps),
                "value": pa.array(np.random.default_rng(start).normal(size=len(steps))),
            }
        )
        loop.run_until_complete(store.insert("metric_points", table, token=f"load-{start}"))

    def ask(sql: str) -> dict[str, float]:
        with stopwatch() as watch:
            rows = loop.run_until_complete(store.query(sql)).num_rows
        return watch.values(rows=rows)

    return (
        ours(lambda: ask(RUNS), label="runs list"),
        ours(lambda: ask(SERIES), name="last_values", label="last values of 5,000 series"),
        floor("SELECT 1 through the store process", lambda: ask("SELECT 1")),
    )


def searches(stack: ExitStack) -> tuple[Variant, ...]:
    """A million log lines; the word looked for is in one of ten thousand of them."""
    loop, store = _open_store(stack)
    base = 1_794_000_000_000
    for start in range(0, _LINES, 100_000):
        numbers = range(start, start + 100_000)
        texts = [
            f"rank {n % 64} step {n}: {'gradient overflow, scale halved' if n % 10_000 == 77 else 'loss 0.123 lr 1e-3'}"
            for n in numbers
        ]
        columns: dict[str, Any] = {
            "event_time": pa.array([base + n for n in numbers], pa.int64()).cast(pa.timestamp("ms", tz="UTC")),
            "id": [f"log_{base + n:011x}{n:08x}" for n in numbers],
            "message": texts,
        }
        for name, value in (("level", "info"), ("source", "worker"), ("task_id", "t1"), ("worker_id", "w1")):
            columns[name] = [value] * len(texts)
        loop.run_until_complete(store.insert("logs", pa.table(columns), token=f"logs-{start}"))

    def search(query: LogQuery) -> dict[str, float]:
        sql, parameters = _sql(query)
        with stopwatch() as watch:
            rows = loop.run_until_complete(store.query(sql, parameters)).num_rows
        return watch.values(rows=rows)

    return (
        ours(lambda: search(LogQuery(q="gradient overflow"))),
        ours(lambda: search(LogQuery(q="no such words anywhere")), name="nothing", label="a word that is nowhere"),
        floor("the newest hundred", lambda: search(LogQuery())),
    )


def _open_store(stack: ExitStack) -> tuple[asyncio.AbstractEventLoop, SupervisedStore]:
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    store = SupervisedStore(StoreConfig(path=f"{folder}/metrics"))
    loop.run_until_complete(store.start())
    stack.callback(lambda: loop.run_until_complete(store.stop()))
    loop.run_until_complete(store.wait_ready())
    return loop, store


BENCHMARK = Benchmark(
    name="observatory",
    packages=("chdb", "chdb-core", "clickhouse-connect", "fastapi", "grpcio", "numpy", "orjson", "pyarrow", "uvicorn"),
    cases=(
        Case(
            name="100,000 points/s of 5,000 series through gRPC into the store",
            variants=(ours(ingest),),
            targets=(
                Target(metric="points_per_s", versus=None, at_least=99_000),
                Target(metric="cores", versus=None, at_most=1.2),
                Target(metric="to_browser_p95_s", versus=None, at_most=0.6),
            ),
            repeats=3,
            warmups=0,
        ),
        Case(
            name="500 SSE clients at 4 deltas/s",
            variants=(ours(clients),),
            targets=(
                Target(metric="least_deltas", versus=None, at_least=15),
                Target(metric="cores", versus=None, at_most=1.0),
            ),
            repeats=3,
            warmups=0,
        ),
        Case(
            name="snapshot of 100 runs × 50 metrics inside its byte budget",
            variants=snapshots,
            targets=(Target(metric="wall_s", versus=None, at_most=1.0),),
        ),
        Case(
            name="reads at 10 million rows",
            variants=reads,
            targets=(
                Target(metric="wall_s", versus=None, at_most=0.05),
                Target(metric="wall_s", of="last_values", versus=None, at_most=0.05),
            ),
        ),
        Case(
            name="log search over a million lines, first page",
            variants=searches,
            targets=(
                Target(metric="wall_s", versus=None, at_most=0.3),
                Target(metric="wall_s", of="nothing", versus=None, at_most=0.3),
            ),
        ),
    ),
)
