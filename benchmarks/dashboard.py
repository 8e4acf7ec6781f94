"""The metrics page in Debian's chromium, on a real observatory fed over POST: opening, toggling, following.

1,000 metric names, 20 runs of 100,000 points each (500 names × 200 points). Then 20 charts × 10 runs are fed four times
a second. The ten-minute soak is dashboard_soak; ten thousand names are dashboard_wide.
"""

import gzip
import json
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, ours, peer
from benchmarks.scripts.first_charts import SHARED, browser_page, names_of, visit
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["BENCHMARK"]

RUNS, NAMES_PER_RUN, POINTS = 20, 500, 200
CHARTS, FED_RUNS, EVERY_S = SHARED, 10, 0.25
VISITS = 5
SETTLE_S, STEADY_S = 5.0, 30.0
"""What a page does while it opens is the other case's; a hundred deltas come in STEADY_S."""
START_S = 120.0
STILL_MS = 1_500

CARD = "article[data-metric]"
# A chart is built when its points are here; its newest value is in the card's head.
DRAWN = """(card) =>
  card.querySelector('.uplot canvas') && /\\d/.test(card.querySelector('[data-testid=latest]').textContent)"""
# Runs before the page's own code: when deltas arrive, long tasks, whether React touched a chart card, and when anything
# was last awaited or drawn.
WATCH = """() => {
  const log = (window.__bench = { deltas: [], painted: [], longest: 0, long: 0, grid: 0, busy: 0, draws: 0 });
  const look = () => {
    const now = window.__strata?.counters();
    const busy = now && (now.waiting > 0 || now.draws > log.draws);
    if (busy) Object.assign(log, { busy: performance.now(), draws: now.draws });
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  const add = EventSource.prototype.addEventListener;
  EventSource.prototype.addEventListener = function (type, listener, options) {
    const timed = (event) => {
      if (type === "delta") log.deltas.push(performance.now());
      listener.call(this, event);
    };
    return add.call(this, type, timed, options);
  };
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) {
      log.longest = Math.max(log.longest, task.duration);
      log.long += 1;
    }
  }).observe({ type: "longtask" });
}"""
# After each frame is painted: how many charts were drawn so far. React gives a host element a new props object whenever
# it renders the component that owns it, so a changed object on a card is a commit in the grid.
FOLLOW = """() => {
  const log = window.__bench;
  Object.assign(log, { deltas: [], painted: [], longest: 0, long: 0, grid: 0 });
  const channel = new MessageChannel();
  channel.port1.onmessage = () => log.painted.push([performance.now(), window.__strata.counters().draws]);
  const cards = [...document.querySelectorAll("article[data-metric]")];
  const key = Object.keys(cards[0]).find((name) => name.startsWith("__reactProps$"));
  let props = cards.map((card) => card[key]);
  const frame = () => {
    channel.port2.postMessage(0);
    const now = cards.map((card) => card[key]);
    log.grid += now.filter((one, i) => one !== props[i]).length;
    props = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  return cards.length;
}"""
TOGGLE = """() => new Promise((done) => {
  const start = performance.now();
  document.querySelector("button[data-run]").click();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => done(performance.now() - start);
  requestAnimationFrame(() => channel.port2.postMessage(0));
})"""


def post(url: str, run: str, points: list[dict[str, Any]]) -> None:
    body = json.dumps({"points": points}).encode()
    request = Request(f"{url}/api/runs/{run}/points", data=body, headers={"content-type": "application/json"})  # noqa: S310  # our own loopback server
    with urlopen(request, timeout=60) as answer:  # noqa: S310  # the same
        assert json.load(answer)["accepted"] == len(points)


def fill(url: str) -> None:
    for run in range(RUNS):
        names = names_of(run, NAMES_PER_RUN)
        for first in range(0, POINTS, 25):
            points = [
                {"metric": name, "step": step, "value": math.sin(step / 20 + number) + run}
                for step in range(first, first + 25)
                for number, name in enumerate(names)
            ]
            post(url, f"run-{run:02d}", points)


class Feeder(threading.Thread):
    """Four times a second one new point for each of the shown charts in each of the fed runs."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._ended = threading.Event()
        self._step = POINTS

    def run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due += EVERY_S
            for run in range(FED_RUNS):
                points = [
                    {"metric": f"bench/{number:04d}", "step": self._step, "value": math.sin(self._step / 20 + run)}
                    for number in range(CHARTS)
                ]
                post(self._url, f"run-{run:02d}", points)
            self._step += 1

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def watched_page() -> Iterator[Any]:
    with browser_page("--enable-precise-memory-info") as page:
        page.add_init_script(f"({WATCH})()")
        yield page


def opened(url: str, query: str = "") -> dict[str, float]:
    """Charts of the first screen in a new browser, and what of JavaScript was loaded for them."""
    scripts: list[str] = []
    with watched_page() as page:
        page.on("request", lambda one: scripts.append(one.url) if one.resource_type == "script" else None)
        figures = visit(page, f"{url}/ui/metrics{query}", card=CARD, drawn=DRAWN)
    return figures | {"js_gzip_bytes": float(sum(len(gzip.compress(fetched(one))) for one in scripts))}


def settled(page: Any) -> dict[str, float]:
    """When the page had drawn all that it had asked for, and its longest task until then."""
    page.wait_for_function(f"() => performance.now() - window.__bench.busy > {STILL_MS}", polling=100, timeout=60_000)
    log = page.evaluate("window.__bench")
    return {"settled_s": log["busy"] / 1000, "longest_task_ms": float(log["longest"])}


def medians(visits: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in visits) for key in visits[0]}


def fetched(address: str) -> bytes:
    with urlopen(address, timeout=60) as answer:  # noqa: S310  # our own loopback server
        body: bytes = answer.read()
        return body


def toggled(page: Any) -> float:
    page.wait_for_function("() => document.querySelectorAll('button[data-run]').length > 0")
    return statistics.median(float(page.evaluate(TOGGLE)) for _ in range(8))


def followed(page: Any, seconds: float) -> dict[str, float]:
    """From the arrival of a delta to the painted frame in which every visible chart was drawn once more."""
    page.wait_for_timeout(SETTLE_S * 1000)
    cards = page.evaluate(FOLLOW)
    assert cards == CHARTS, f"{cards} charts are on the page, {CHARTS} are wanted"
    page.wait_for_timeout(seconds * 1000)
    log = page.evaluate("window.__bench")
    latencies = []
    for at in log["deltas"][:-4]:
        before = max((draws for when, draws in log["painted"] if when <= at), default=None)
        if before is None:
            continue
        done = next((when for when, draws in log["painted"] if when > at and draws >= before + CHARTS), None)
        if done is not None:
            latencies.append(done - at)
    assert len(latencies) >= 40, f"only {len(latencies)} deltas were followed"
    return {
        "deltas": float(len(log["deltas"])),
        "painted_p50_ms": statistics.median(latencies),
        "painted_p95_ms": statistics.quantiles(latencies, n=20)[-1],
        "longest_task_ms": float(log["longest"]),
        "long_tasks": float(log["long"]),
        "react_commits_in_grid": float(log["grid"]),
    }


def live_charts(url: str, page: Any) -> None:
    runs = ",".join(f"run-{run:02d}" for run in range(FED_RUNS))
    page.goto(f"{url}/ui/metrics?q=^bench/00[01]&runs={runs}")
    drawn = f"() => [...document.querySelectorAll('{CARD}')].filter({DRAWN}).length"
    page.wait_for_function(f"{drawn} === {CHARTS}", timeout=60_000)


def filled(stack: ExitStack) -> str:
    """The address of a cluster of its own that holds the runs."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-page-")))
    cluster = stack.enter_context(Cluster(folder, "--no-agent"))
    url = cluster.endpoints["http"]
    eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=START_S)
    fill(url)
    eventually("the runs", lambda: len(cluster.get("/runs")) == RUNS, within_s=START_S)
    return url


def build(stack: ExitStack) -> tuple[Variant, ...]:
    url = filled(stack)

    def measure() -> dict[str, float]:
        figures = medians([opened(url) for _ in range(VISITS)])
        every = ",".join(f"run-{run:02d}" for run in range(RUNS))
        all_runs = medians([opened(url, f"?runs={every}") for _ in range(VISITS)])
        with watched_page() as page:
            live_charts(url, page)
            figures["toggle_ms"] = toggled(page)
        return figures | {"twenty_runs_s": all_runs["interactive_s"]}

    return (
        ours(measure),
        peer(
            "tensorboard",
            Script(
                SCRIPTS / "tensorboard_page.py",
                requires=("tensorboard==2.20.0", "tensorboardX==2.6.5", "setuptools<81", "playwright==1.65.0"),
                args=(str(RUNS), str(NAMES_PER_RUN), str(POINTS), str(VISITS)),
                timeout_s=1_200.0,
            ),
        ),
    )


def follow(stack: ExitStack) -> tuple[Variant, ...]:
    url = filled(stack)

    def measure() -> dict[str, float]:
        feeder = Feeder(url)
        feeder.start()
        try:
            with watched_page() as page:
                live_charts(url, page)
                return followed(page, STEADY_S)
        finally:
            feeder.end()

    return (ours(measure),)


BENCHMARK = Benchmark(
    name="dashboard",
    packages=("playwright",),
    cases=(
        Case(
            name="open the metrics page: 1,000 names, 20 runs × 100,000 points; toggle a run",
            variants=build,
            targets=(
                Target(
                    metric="interactive_s",
                    versus=None,
                    at_most=1.5,
                    work="metrics page, 1,000 names × 20 runs, interactive",
                ),
                Target(metric="twenty_runs_s", versus="tensorboard", at_most=1.0),
                Target(metric="toggle_ms", versus=None, at_most=50.0),
                Target(metric="js_gzip_bytes", versus=None, at_most=200_000.0),
            ),
            repeats=1,  # each side visits its page VISITS times; TensorBoard needs minutes to read the logs once
            warmups=0,
        ),
        Case(
            name="follow 20 charts × 10 runs at 4 deltas/s",
            variants=follow,
            targets=(
                Target(metric="painted_p95_ms", versus=None, at_most=250.0),
                Target(metric="longest_task_ms", versus=None, at_most=50.0),
                Target(metric="react_commits_in_grid", versus=None, at_most=0.0),
            ),
            repeats=1,
            warmups=0,
        ),
    ),
)
