"""Ten thousand ranks on the page: a fleet of 1,250 agents is played on real connections (`scripts/fleet_feed.py`), each
rank beats and logs once in a second, and Debian's chromium looks at the rank heatmap, the fleet map and the task.

`frame_p95_ms` is between two frames of the page, `main_thread` the share of its main thread that worked; `stream_*` are
bytes of GET /stream as a page has it, in a second; `status_p95_ms` is how long GET /api/status takes meanwhile.
"""

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.harness import SCRIPTS, Benchmark, Case, Target, Variant, ours
from benchmarks.scripts.first_charts import browser_page
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["BENCHMARK"]

HOSTS = 1_250
LOOK_S = 20.0
START_S = 180.0
PAGES = {
    "heat": ("/ui/cluster?view=heatmap", "canvas[data-heat]"),
    "map": ("/ui/cluster", "canvas[data-fleet]"),
    "task": ("/ui/tasks/{task}", "canvas[data-fleet]"),
}
LIVE = {
    name: f"10,000 ranks live: {what}" for name, what in (("heat", "heatmap"), ("map", "fleet map"), ("task", "task"))
}
FRAMES = """() => {
  const log = (window.__frames = []);
  let last = performance.now();
  const frame = (now) => { log.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


class Listener(threading.Thread):
    """Counts what a page's stream brings, and asks for the status beside it."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__(daemon=True)
        self._url, self._seconds = url, seconds
        self.by_event: dict[str, int] = {}
        self.snapshot = 0
        self.waits: list[float] = []

    def run(self) -> None:
        asking = threading.Thread(target=self._ask, daemon=True)
        asking.start()
        until, name = time.monotonic() + self._seconds, ""
        with urlopen(f"{self._url}/stream?sparse=true", timeout=60) as stream:  # noqa: S310  # our own loopback server
            for line in stream:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    if name == "snapshot":
                        self.snapshot = len(line)
                    else:
                        self.by_event[name] = self.by_event.get(name, 0) + len(line)
                if time.monotonic() > until:
                    break
        asking.join()

    def _ask(self) -> None:
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            began = time.monotonic()
            with urlopen(f"{self._url}/api/status", timeout=60) as answer:  # noqa: S310  # the same
                answer.read()
            self.waits.append(time.monotonic() - began)
            time.sleep(0.02)

    def figures(self) -> dict[str, float]:
        per_s = {f"stream_{name}_bytes": size / self._seconds for name, size in self.by_event.items()}
        waits = statistics.quantiles(self.waits, n=20)
        return per_s | {"snapshot_bytes": float(self.snapshot), "status_p95_ms": waits[-1] * 1e3}


def looked_at(page: Any, name: str) -> dict[str, float]:
    """The page is open: what it does in LOOK_S."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def busy() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    page.wait_for_timeout(5_000)
    page.evaluate(FRAMES)
    before, began = busy(), time.monotonic()
    page.wait_for_timeout(LOOK_S * 1000)
    share = (busy() - before) / (time.monotonic() - began)
    frames = page.evaluate("window.__frames")[2:]
    return {
        f"{name}_frame_p95_ms": statistics.quantiles(frames, n=20)[-1],
        f"{name}_frame_longest_ms": max(frames),
        f"{name}_main_thread": share,
    }


def build(stack: ExitStack) -> tuple[Variant, ...]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-fleet-page-")))
    cluster = stack.enter_context(Cluster(folder, "--no-agent"))
    url, token = cluster.endpoints["http"], (folder / "token").read_text().strip()
    eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=START_S)
    command = [sys.executable, str(SCRIPTS / "fleet_feed.py"), cluster.endpoints["grpc"], token, url, str(HOSTS)]
    feed = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    stack.callback(feed.kill)
    assert feed.stdout is not None
    task = feed.stdout.readline().split()[1]

    def measure() -> dict[str, float]:
        listener = Listener(url, LOOK_S)
        listener.start()
        listener.join()
        figures = listener.figures()
        with browser_page() as page:
            for name, (path, shown) in PAGES.items():
                page.goto(url + path.format(task=task))
                page.wait_for_selector(shown, timeout=60_000)
                figures |= looked_at(page, name)
        return figures

    return (ours(measure),)


BENCHMARK = Benchmark(
    name="fleet_page",
    packages=("playwright",),
    cases=(
        Case(
            name="10,000 ranks behind 1,250 agents on the page, each with a beat and a point in a second",
            variants=build,
            targets=(
                *(
                    Target(metric=f"{name}_frame_p95_ms", versus=None, at_most=100.0, work=f"{LIVE[name]}, frame p95")
                    for name in PAGES
                ),
                *(
                    Target(metric=f"{name}_main_thread", versus=None, at_most=0.30, work=f"{LIVE[name]}, main thread")
                    for name in PAGES
                ),
            ),
            repeats=1,
            warmups=0,
        ),
    ),
)
