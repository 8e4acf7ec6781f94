"""The metrics page where much was logged: 20 runs of 10,000 metric names, 100,000 points a run, sent as the SDK does.

Once when all runs have ended, and once while all of them live: then the page is told of every series. `search_ms` is
from a key in the filter to the painted chart that it leaves.
"""

import math
import statistics
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.dashboard import CARD, DRAWN, START_S, VISITS, medians, settled, watched_page
from benchmarks.harness import Benchmark, Case, Target, Variant, ours
from benchmarks.scripts.first_charts import visit
from strata.client.telemetry import send_batches
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import NO_DEVICE
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["BENCHMARK"]

RUNS, NAMES, POINTS = 20, 10_000, 10
PER_BATCH = 2_000
STARTED_MS = 1_790_000_000_000
BEAT_S = 5.0
"""As often as a process of the SDK says that it lives."""

SEARCH = """(name) => new Promise((done) => {
  const drawn = %s;
  const field = document.querySelector("#metric-search");
  const start = performance.now();
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, name);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const look = () => {
    const cards = [...document.querySelectorAll("article[data-metric]")];
    if (cards.length === 1 && cards[0].dataset.metric === name && drawn(cards[0])) done(performance.now() - start);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def run_ids() -> list[str]:
    return [f"run-{run:02d}" for run in range(RUNS)]


def metric_of(number: int) -> str:
    return f"layer{number // 10:04d}/grad_{number % 10}"


def batches(status: str) -> Iterator[Batch]:
    for run, run_id in enumerate(run_ids()):
        started = STARTED_MS + 60_000 * run
        for first in range(0, NAMES, PER_BATCH):
            batch = Batch(batch_id=f"wide-{run}-{first}")
            batch.runs.add(run_id=run_id, status=status, started_at_ms=started, updated_at_ms=started)
            for index in range(PER_BATCH):
                batch.series.add(index=index, run_id=run_id, metric=metric_of(first + index), device=NO_DEVICE)
                batch.points.series.extend([index] * POINTS)
                batch.points.step.extend(range(POINTS))
                batch.points.event_time_ms.extend(range(started, started + 1000 * POINTS, 1000))
                batch.points.value.extend(math.sin(step / 3 + run) + index for step in range(POINTS))
            yield batch


@contextmanager
def alive(address: str) -> Iterator[None]:
    """Meanwhile all runs say that they live."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT_S):
            send_batches([Batch(batch_id=uuid.uuid4().hex, alive=run_ids())], address)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wide(status: str) -> Callable[[ExitStack], tuple[Variant, ...]]:
    def build(stack: ExitStack) -> tuple[Variant, ...]:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-wide-")))
        cluster = stack.enter_context(Cluster(folder, "--no-agent"))
        eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=START_S)
        if status == "running":
            stack.enter_context(alive(cluster.endpoints["telemetry"]))
        send_batches(batches(status), cluster.endpoints["telemetry"])
        eventually("all in the store", lambda: not cluster.get("/api/status")["spool_backlog_bytes"], within_s=START_S)
        runs = [run for run in cluster.get("/api/runs") if run["run_id"] in run_ids()]
        assert [(run["state"], run["num_series"]) for run in runs] == [(status, NAMES)] * RUNS
        return (ours(lambda: medians([opened(cluster.endpoints["http"]) for _ in range(VISITS)])),)

    return build


def opened(url: str) -> dict[str, float]:
    with watched_page() as page:
        figures = visit(page, f"{url}/ui/metrics", card=CARD, drawn=DRAWN) | settled(page)
        names = [metric_of(number) for number in (9_993, 5_003, 1_233)]
        found = [float(page.evaluate(SEARCH % DRAWN, name)) for name in names]
        return figures | {"search_ms": statistics.median(found)}


def case(status: str, words: str) -> Case:
    return Case(
        name=f"open the metrics page: {NAMES:,} names × {RUNS} runs × {NAMES * POINTS:,} points, {words}",
        variants=wide(status),
        targets=(
            Target(
                metric="interactive_s",
                versus=None,
                at_most=1.5,
                work=f"metrics page, 10,000 names in each of 20 runs, {words}, interactive",
            ),
        ),
        repeats=1,  # VISITS visits
        warmups=0,
    )


BENCHMARK = Benchmark(
    name="dashboard_wide",
    packages=("playwright",),
    cases=(case("finished", "all ended"), case("running", "all running")),
)
