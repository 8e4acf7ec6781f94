"""The runs table on a real observatory: 10,000 runs with tags, config and points, filtered and sorted over REST, and
shown in Debian's chromium, from the address to the first rows that are painted.
"""

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.harness import Benchmark, Case, Target, Variant, ours
from benchmarks.measure import stopwatch
from benchmarks.scripts.first_charts import browser_page, visit
from strata.client.telemetry import send_batches
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import NO_DEVICE
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["BENCHMARK"]

RUNS, PER_BATCH = 10_000, 200
ASKINGS, START_S = 20, 120.0
ASKED = {"filter": "lr > 1e-3 and tag:t3 and loss.min < 0.9", "sort": "loss.min", "column": "loss.min", "limit": 300}
NOW_MS = 1_790_000_000_000


def described(number: int) -> dict[str, object]:
    tags = [f"t{number % 7}", f"u{number % 50}"]
    config = f'{{"lr": {10 ** -(number % 5)}, "seed": {number}}}'
    return {"run_id": f"run-{number:05d}", "group": f"g{number % 10}", "tags": tags, "config_json": config}


def batch_of(numbers: range) -> Batch:
    batch = Batch(batch_id=f"workbench-{numbers.start}")
    for index, number in enumerate(numbers):
        batch.runs.add(status="finished", started_at_ms=NOW_MS, updated_at_ms=NOW_MS, **described(number))
        batch.series.add(index=index, run_id=f"run-{number:05d}", metric="loss", device=NO_DEVICE)
        batch.points.series.extend([index] * 3)
        batch.points.step.extend(range(3))
        batch.points.event_time_ms.extend([NOW_MS] * 3)
        batch.points.value.extend([1.0, number / RUNS, 0.95])
    return batch


def started(stack: ExitStack) -> Cluster:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-workbench-")))
    cluster = stack.enter_context(Cluster(folder, "--no-agent"))
    eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=START_S)
    return cluster


def filled(stack: ExitStack) -> Cluster:
    cluster = started(stack)
    batches = (batch_of(range(first, first + PER_BATCH)) for first in range(0, RUNS, PER_BATCH))
    send_batches(batches, cluster.endpoints["telemetry"])
    eventually("the runs", lambda: len(cluster.get("/api/runs?limit=20000")) == RUNS, within_s=START_S)
    return cluster


def table(stack: ExitStack) -> tuple[Variant, ...]:
    cluster = filled(stack)
    path = f"/api/runs/table?{urlencode(ASKED)}"

    def measure() -> dict[str, float]:
        times = []
        for _ in range(ASKINGS):
            with stopwatch() as watch:
                found = cluster.get(path)
            times.append(watch.wall_s)
        return {"table_p50_s": statistics.median(times), "table_max_s": max(times), "matched": float(found["matched"])}

    return (ours(measure),)


def page(stack: ExitStack) -> tuple[Variant, ...]:
    url = filled(stack).endpoints["http"]

    def measure() -> dict[str, float]:
        with browser_page() as fresh:
            return visit(fresh, f"{url}/ui/runs", card="tbody tr", drawn="(row) => row.textContent !== ''")

    return (ours(measure),)


BENCHMARK = Benchmark(
    name="workbench",
    packages=("fastapi", "orjson", "playwright", "uvicorn"),
    cases=(
        Case(
            name=f"filter and sort {RUNS:,} runs with tags over REST",
            variants=table,
            targets=(
                Target(
                    metric="table_p50_s",
                    versus=None,
                    at_most=0.2,
                    work="10,000 runs filtered and sorted over REST, p50",
                ),
            ),
            repeats=3,
        ),
        Case(
            name=f"open the page of {RUNS:,} runs",
            variants=page,
            targets=(
                Target(metric="interactive_s", versus=None, at_most=1.0, work="runs page with 10,000 runs, first rows"),
            ),
            repeats=3,
            warmups=0,
        ),
    ),
)
