"""Ingest to its knee: a hundred training processes log more and more until the observatory keeps up no longer. Every
point is acknowledged when it is on the disk, and in the end all of them are in the store.

The load (scripts/ingest_load.py) sends what the SDK sends: a connection per process, every 250 ms one batch of what was
logged meanwhile, 50 metrics at every step. It shares the machine's cores with what it loads; `load_cores` says how much
it took. `points_per_s` counts points from the first one sent until all are stored, so neither the spool nor a queue
hides a store that falls behind. `to_browser` runs from the log call of a probe to its arrival at a browser: 250 ms of
the SDK's interval and 250 ms of the stream's are in it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.harness import SCRIPTS, Benchmark, Case, Target, ours
from benchmarks.picture import scaling
from benchmarks.results import CaseResult
from benchmarks.scripts.observatory_server import Server, server

__all__ = ["BENCHMARK"]

_RATES = (100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 800_000)
_SECONDS = 15.0


def load(running: Server, rate: int) -> dict[str, float]:
    command = [sys.executable, str(SCRIPTS / "ingest_load.py"), running.telemetry, running.http]
    env = os.environ | {"PYTHONPATH": str(SCRIPTS.parent.parent)}
    start = time.perf_counter()
    with subprocess.Popen([*command, str(rate), str(_SECONDS)], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        process.stdout.readline()  # steady
        before, steady = running.cpu_s(), time.perf_counter()
        figures: dict[str, float] = json.loads(process.stdout.readline())
        elapsed = time.perf_counter() - steady
        used = [after - before for before, after in zip(before, running.cpu_s(), strict=True)]
        figures |= json.loads(process.stdout.readline())
    last = time.perf_counter()
    running.wait_stored()
    end = time.perf_counter()
    kept = sum(run["num_points"] for run in running.get("/runs"))
    assert kept == figures["accepted"], f"{kept} of {figures['accepted']} accepted points are there"
    return {
        "wall_s": end - start,
        "points_per_s": figures.pop("accepted") / (end - start),
        **figures,
        "observatory_cores": used[0] / elapsed,
        "store_cores": used[1] / elapsed,
        "behind_s": end - last,
        "rss_bytes": running.rss_bytes(),
    }


def offer(rate: int) -> Callable[[], dict[str, float]]:
    def measure() -> dict[str, float]:
        with server() as running:
            return load(running, rate)

    return measure


def _name(rate: int) -> str:
    return f"{rate // 1000}k"


def _picture(cases: Sequence[CaseResult]) -> str:
    shown = {"to_browser_p95_s": "to the browser, p95", "ack_p99_s": "acknowledged, p99"}
    lines: dict[str, list[tuple[float, float]]] = {label: [] for label in shown.values()}
    for variant in cases[0].variants:
        for metric, label in shown.items():
            found, paces = variant.values(metric), variant.values("points_per_s")
            if found:
                lines[label].append((sorted(paces)[len(paces) // 2], sorted(found)[len(found) // 2]))
    return scaling("Points a second, acknowledged and stored, on two cores", "points per second", "delay", lines)


BENCHMARK = Benchmark(
    name="ingest",
    packages=("strata-engine", "grpcio", "numpy", "orjson", "protobuf", "uvloop"),
    cases=(
        Case(
            name="points a second offered by 100 processes of 50 metrics each",
            variants=tuple(ours(offer(rate), name=_name(rate), label=f"{rate:,} offered") for rate in _RATES),
            targets=(
                Target(
                    metric="acked_per_s",
                    of="400k",
                    versus=None,
                    at_least=396_000,
                    work="ingest, 400,000 points/s offered, durable",
                ),
                Target(
                    metric="to_browser_p95_s",
                    of="400k",
                    versus=None,
                    at_most=0.6,
                    work="ingest of 400,000 points/s, to the browser, p95",
                ),
                Target(metric="behind_s", of="400k", versus=None, at_most=2.0),
            ),
            repeats=3,
            warmups=0,
        ),
    ),
    picture=_picture,
)
