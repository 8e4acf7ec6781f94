"""The slider over pictures in Debian's chromium, on a real observatory: 10,000 steps that a script logged, scrubbed one
step per frame. Counted are pictures that the page has painted, not frames of the browser.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import Benchmark, Case, Target, Variant, ours
from benchmarks.scripts.first_charts import browser_page
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["BENCHMARK"]

STEPS, SIDE, SCRUBBED = 10_000, 256, 600
START_S = 120.0
# 256 different pictures: a name over many steps, without a minute of disk syncs before the measurement.
LOG = f"""
import numpy as np
import strata
run = strata.init(run_id="frames")
rng = np.random.default_rng(0)
pictures = [rng.integers(0, 255, ({SIDE}, {SIDE}, 3), np.uint8) for _ in range(256)]
for step in range({STEPS}):
    run.log({{"frame": strata.Image(pictures[step % 256])}}, step=step)
    if step % 100 == 0:
        run.reporter.secure()
assert run.finish(timeout_s=300) and run.dropped == 0
"""
# One step further with every frame; what was painted is counted by the page itself.
SCRUB = """async (count) => {
  const slider = document.querySelector("input[type=range][aria-label='Step of frame']");
  const view = document.querySelector("[data-media]");
  const before = Number(view.dataset.frames);
  const began = performance.now();
  for (let at = 0; at < count; at++) {
    slider.value = at;
    slider.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise(requestAnimationFrame);
  }
  const seconds = (performance.now() - began) / 1000;
  const painted = Number(view.dataset.frames) - before;
  return { pictures_per_s: painted / seconds, painted_share: painted / count };
}"""


def scrub(stack: ExitStack) -> tuple[Variant, ...]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-media-")))
    cluster = stack.enter_context(Cluster(folder, "--no-agent"))
    eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=START_S)
    environment = {**os.environ, "STRATA_DATA_DIR": str(cluster.folder)}
    subprocess.run([sys.executable, "-c", LOG], env=environment, check=True)

    def measure() -> dict[str, float]:
        with browser_page() as page:
            page.goto(f"{cluster.endpoints['http']}/ui/runs/frames")
            page.wait_for_selector(f"[data-media][data-step='{STEPS - 1}']", timeout=60_000)
            figures: dict[str, float] = page.evaluate(SCRUB, SCRUBBED)
            return figures

    return (ours(measure),)


BENCHMARK = Benchmark(
    name="media",
    packages=("playwright",),
    cases=(
        Case(
            name=f"scrub {SCRUBBED} of {STEPS:,} steps of {SIDE} × {SIDE} pictures",
            variants=scrub,
            targets=(Target(metric="pictures_per_s", versus=None, at_least=30.0),),
            repeats=3,
            warmups=0,
        ),
    ),
)
