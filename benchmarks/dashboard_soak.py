"""The metrics page left open: heap, nodes and listeners of 20 charts × 10 runs, fed four times a second.

STRATA_BENCH_SOAK_S=600 makes it the ten minutes of the claim; a minute without. Garbage is collected first each time.
"""

import os
from contextlib import ExitStack
from typing import Any

from benchmarks.dashboard import Feeder, filled, live_charts, watched_page
from benchmarks.harness import Benchmark, Case, Target, Variant, ours

__all__ = ["BENCHMARK"]

SOAK_S = float(os.environ.get("STRATA_BENCH_SOAK_S", "60"))
SETTLE_S, SAMPLE_S = 30.0, 30.0
COUNTED = {"Nodes": "nodes", "JSEventListeners": "listeners"}


def sample(session: Any) -> dict[str, float]:
    session.send("HeapProfiler.collectGarbage")
    counted = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    heap = session.send("Runtime.getHeapUsage")
    held = float(heap["usedSize"] + heap["backingStorageSize"])  # typed columns are kept outside of the heap proper
    return {"heap_bytes": held} | {ours: float(counted[theirs]) for theirs, ours in COUNTED.items()}


def soak(stack: ExitStack) -> tuple[Variant, ...]:
    url = filled(stack)

    def measure() -> dict[str, float]:
        feeder = Feeder(url)
        feeder.start()
        try:
            with watched_page() as page:
                live_charts(url, page)
                session = page.context.new_cdp_session(page)
                session.send("Performance.enable")
                page.wait_for_timeout(SETTLE_S * 1000)
                samples = [sample(session)]
                for _ in range(round(SOAK_S / SAMPLE_S)):
                    page.wait_for_timeout(SAMPLE_S * 1000)
                    samples.append(sample(session))
                received = page.evaluate("() => window.__strata.counters().received")
        finally:
            feeder.end()
        growth = {f"{name}_growth": samples[-1][name] - samples[0][name] for name in COUNTED.values()}
        return growth | {
            "soak_s": SOAK_S,
            "points_received": float(received),
            "heap_bytes": samples[0]["heap_bytes"],
            "heap_growth_bytes": samples[-1]["heap_bytes"] - samples[0]["heap_bytes"],
            "heap_peak_growth_bytes": max(one["heap_bytes"] for one in samples) - samples[0]["heap_bytes"],
        }

    return (ours(measure),)


BENCHMARK = Benchmark(
    name="dashboard_soak",
    packages=("playwright",),
    cases=(
        Case(
            name="20 charts × 10 runs at 4 deltas/s, left open",
            variants=soak,
            targets=(
                Target(metric="heap_peak_growth_bytes", versus=None, at_most=20e6),
                Target(metric="listeners_growth", versus=None, at_most=20.0),
                Target(metric="nodes_growth", versus=None, at_most=200.0),
            ),
            repeats=1,
            warmups=0,
        ),
    ),
)
