"""The runs table on a real observatory: 10,000 runs with tags, config and points, filtered and sorted over REST, and
opened in Debian's chromium. And 100 runs on 20 charts, each with its own line and as ten groups."""

import math
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.dashboard import CARD, CHARTS, DRAWN, VISITS, medians, settled, watched_page
from benchmarks.harness import Benchmark, Case, Target, Variant, ours
from benchmarks.measure import stopwatch
from benchmarks.scripts.first_charts import visit
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
DRAWN_RUNS, DRAWN_POINTS = 100, 400

# A row of the table, and whether its columns are there: the last loss of every run is 0.95.
ROW = "section[aria-label=Runs] tbody tr"
FILLED = "(row) => row.textContent.includes('0.95')"


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


def drawn_batches() -> Iterator[Batch]:
    for number in range(DRAWN_RUNS):
        batch = Batch(batch_id=f"drawn-{number}")
        batch.runs.add(status="finished", started_at_ms=NOW_MS, updated_at_ms=NOW_MS, **described(number))
        for index in range(CHARTS):
            batch.series.add(index=index, run_id=f"run-{number:05d}", metric=f"bench/{index:04d}", device=NO_DEVICE)
            batch.points.series.extend([index] * DRAWN_POINTS)
            batch.points.step.extend(range(DRAWN_POINTS))
            batch.points.event_time_ms.extend(range(NOW_MS, NOW_MS + 1000 * DRAWN_POINTS, 1000))
            batch.points.value.extend(math.sin(step / 20 + index) + number / 10 for step in range(DRAWN_POINTS))
        yield batch


def started(stack: ExitStack) -> Cluster:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-workbench-")))
    cluster = stack.enter_context(Cluster(folder, "--no-agent"))
    eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=START_S)
    return cluster


def with_runs(stack: ExitStack) -> Cluster:
    cluster = started(stack)
    batches = (batch_of(range(first, first + PER_BATCH)) for first in range(0, RUNS, PER_BATCH))
    send_batches(batches, cluster.endpoints["telemetry"])
    eventually("the runs", lambda: len(cluster.get("/api/runs?limit=20000")) == RUNS, within_s=START_S)
    return cluster


def table(stack: ExitStack) -> tuple[Variant, ...]:
    cluster = with_runs(stack)
    path = f"/api/runs/table?{urlencode(ASKED)}"

    def measure() -> dict[str, float]:
        times = []
        for _ in range(ASKINGS):
            with stopwatch() as watch:
                found = cluster.get(path)
            times.append(watch.wall_s)
        return {"table_p50_s": statistics.median(times), "table_max_s": max(times), "matched": float(found["matched"])}

    return (ours(measure),)


def page_of_runs(stack: ExitStack) -> tuple[Variant, ...]:
    cluster = with_runs(stack)

    def opened() -> dict[str, float]:
        with watched_page() as page:
            rows = visit(page, f"{cluster.endpoints['http']}/ui/runs", card=ROW, drawn=FILLED)
            return {
                "interactive_s": rows["interactive_s"],
                "first_screen_s": rows["first_screen_s"],
                "first_screen_rows": rows["first_screen_charts"],
                "longest_task_ms": settled(page)["longest_task_ms"],
            }

    return (ours(lambda: medians([opened() for _ in range(VISITS)])),)


def groups(stack: ExitStack) -> tuple[Variant, ...]:
    cluster = started(stack)
    send_batches(drawn_batches(), cluster.endpoints["telemetry"])
    eventually("the runs", lambda: len(cluster.get("/api/runs")) == DRAWN_RUNS, within_s=START_S)
    chosen = {"runs": ",".join(f"run-{number:05d}" for number in range(DRAWN_RUNS))}

    def opening(**look: str) -> Callable[[], dict[str, float]]:
        address = f"{cluster.endpoints['http']}/ui/metrics?{urlencode(chosen | look)}"

        def opened() -> dict[str, float]:
            with watched_page() as page:
                figures = visit(page, address, card=CARD, drawn=DRAWN)
                assert figures["first_screen_charts"] == CHARTS, figures
                return figures | settled(page)

        return opened

    apart = Variant(name="ungrouped", label="Strata, each run its own line", run=opening())
    return (ours(opening(group="group"), label="Strata, ten groups"), apart)


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
            variants=page_of_runs,
            targets=(
                Target(metric="interactive_s", versus=None, at_most=1.0, work="runs page with 10,000 runs, first rows"),
            ),
            repeats=1,  # VISITS visits
            warmups=0,
        ),
        Case(
            name=f"open {CHARTS} charts of {DRAWN_RUNS} runs × {DRAWN_POINTS} points, ten groups beside single lines",
            variants=groups,
            targets=(
                Target(
                    metric="settled_s",
                    versus="ungrouped",
                    at_most=1.1,
                    work="20 charts of 100 runs in groups, against single lines",
                ),
            ),
            repeats=5,
            warmups=1,
        ),
    ),
)
