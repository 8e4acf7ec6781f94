"""The observability plane: ingest to the store, point to browser, snapshots, reads at ten million rows, log search."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import grpc
import numpy as np

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours, peer
from benchmarks.measure import stopwatch
from benchmarks.scripts.observatory_server import Server, server
from strata.clock import SystemClock
from strata.observatory.history.logbook import LogQuery, _sql
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.sql import RUNS, SERIES
from strata.observatory.store.supervised import SupervisedStore
from strata.observatory.store.table import TIME, Column, Table, words_of
from strata.observatory.stream.ring import Filter
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from strata.types.metrics import SeriesKey

__all__ = ["BENCHMARK"]

_RATE = 100_000
_SECONDS = 15.0
_SERIES = 5_000
_CLIENTS = 500
_ROWS = 10_000_000
_LINES = 1_000_000
_READ = "cold read of a million points at 2,000 buckets"
_READ_PROFILE = (
    "the engine takes 40 to 55 ms to unpack three columns of a million numbers and to compare others with what was "
    "asked for; memory that nobody has touched yet is most of what varies (ADR 37)."
)


def load(running: Server, seconds: float, clients: int) -> dict[str, float]:
    """100,000 points a second and so many browsers, from a process of its own whose cost is told apart."""
    command = [sys.executable, str(SCRIPTS / "observatory_load.py"), running.telemetry, running.http]
    arguments = [str(_RATE), str(seconds), str(clients)]
    env = os.environ | {"PYTHONPATH": str(SCRIPTS.parent.parent)}
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        process.stdout.readline()  # steady
        before, start = running.cpu_s(), time.perf_counter()
        figures: dict[str, float] = json.loads(process.stdout.readline())
        elapsed = time.perf_counter() - start
        used = [after - before for before, after in zip(before, running.cpu_s(), strict=True)]
    return {
        **figures,
        "cores": sum(used) / elapsed,
        "observatory_cores": used[0] / elapsed,
        "store_cores": used[1] / elapsed,
    }


def ingest() -> dict[str, float]:
    """100,000 points a second over one gRPC stream for 15 s, with a browser watching a probe series; and all of them
    are in the store in the end."""
    with server() as running:
        figures = load(running, _SECONDS, 0)
        start = time.perf_counter()
        running.wait_stored()
        behind_s = time.perf_counter() - start
        kept = sum(run["num_points"] for run in running.get("/runs"))
        assert kept == figures.pop("accepted"), "points are missing"
        return {"wall_s": figures.pop("elapsed_s"), **figures, "behind_s": behind_s, "rss_bytes": running.rss_bytes()}


def clients() -> dict[str, float]:
    """500 browsers at four deltas a second, all of everything; little is logged."""
    with server() as running:
        return asyncio.run(_clients(running))


def crowd() -> dict[str, float]:
    """500 browsers that watch one run of a hundred each, while 100,000 points a second come in."""
    with server() as running:
        figures = load(running, _SECONDS / 2, _CLIENTS)
        return {"wall_s": figures.pop("elapsed_s"), **figures}


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
    cpu, start = sum(running.cpu_s()), time.perf_counter()
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
    elapsed, used = time.perf_counter() - start, sum(running.cpu_s()) - cpu
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
    keys = np.arange(_SERIES)
    words = [f"run-{n // 50}" for n in range(_SERIES)], [f"m{n % 50}" for n in range(_SERIES)]
    per_insert = 100
    for start in range(0, _ROWS // _SERIES, per_insert):
        steps = np.repeat(np.arange(start, start + per_insert, dtype=np.uint64), _SERIES)
        codes = np.tile(keys, per_insert)
        values = np.random.default_rng(start).normal(size=len(steps))
        columns = {"event_time": Column(TIME, base + steps.astype(np.int64) * 1000), "step": Column.of(steps)}
        columns |= {"run_id": words_of(words[0], codes), "metric": words_of(words[1], codes)}
        table = Table({**columns, "value": Column.of(values)})
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
            "event_time": Column(TIME, [base + n for n in numbers]),
            "id": [f"log_{base + n:011x}{n:08x}" for n in numbers],
            "message": texts,
        }
        for name, value in (("level", "info"), ("source", "worker"), ("task_id", "t1"), ("worker_id", "w1")):
            columns[name] = [value] * len(texts)
        loop.run_until_complete(store.insert("logs", Table.of(columns), token=f"logs-{start}"))

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
    packages=("strata-engine", "fastapi", "grpcio", "numpy", "orjson", "uvicorn"),
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
            name="500 SSE clients of one run each at 100,000 points/s",
            variants=(ours(crowd),),
            targets=(
                Target(metric="points_per_s", versus=None, at_least=99_000),
                Target(metric="least_deltas_per_s", versus=None, at_least=3.5),
                Target(metric="to_browser_p95_s", versus=None, at_most=0.6),
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
        Case(
            name="100,000 points logged one by one; a series of a million read back at 2,000 points",
            variants=(
                ours(Script(SCRIPTS / "store_strata.py"), label="Strata, run.log until stored"),
                peer("trackio", Script(SCRIPTS / "store_trackio.py", requires=("trackio==0.43.0",))),
                peer(
                    "mlflow",
                    Script(SCRIPTS / "store_mlflow.py", requires=("mlflow==3.17.2",)),
                    label="MLflow with SQLite, 1,000 per call (peer)",
                ),
                peer("aim", Script(SCRIPTS / "store_aim.py", requires=("aim==3.29.1",))),
                peer(
                    "tensorboard",
                    Script(
                        SCRIPTS / "store_tensorboardx.py",
                        requires=("tensorboard==2.20.0", "tensorboardX==2.6.5", "setuptools<81"),
                    ),
                    label="TensorBoard with tensorboardX (peer)",
                ),
            ),
            targets=(
                Target(metric="read_s", versus=None, at_most=0.1, work=_READ, profile=_READ_PROFILE),
                Target(metric="read_s", versus="aim", at_most=1.0, work=_READ, profile=_READ_PROFILE),
                *(
                    Target(metric=metric, versus=name, at_most=1.0)
                    for metric in ("wall_s", "read_s", "disk_bytes_per_point")
                    for name in ("trackio", "mlflow", "aim", "tensorboard")
                    if (metric, name) != ("read_s", "aim")
                ),
            ),
            repeats=1,
            warmups=0,
        ),
    ),
)
