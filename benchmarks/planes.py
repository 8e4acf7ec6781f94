"""The two planes beside each other: what a loaded observatory costs a barrier of the coordinator.

All on this machine's cores: coordinator, barrier clients, observatory, store, and the load on the observatory, which
stands for other machines and takes only the time that nobody else wants for that. Nothing is pinned to a core. The
observatory and its store run twice, as they do by default and with STRATA_OBSERVATORY_PRIORITY=background, where they
are like their load. What else was tried stands in docs/adr/0008.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.coordinator import BARRIERS
from benchmarks.coordinator import serve as serve_coordinator
from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours
from benchmarks.scripts.observatory_server import Server, server

__all__ = ["BENCHMARK"]

_ENV = os.environ | {"PYTHONPATH": str(SCRIPTS.parent.parent)}
_MEMBERS = 100
_ROUNDS = 4_000
_RATE = 100_000
_CLIENTS = 500
_BURSTS = (
    "the same barrier takes the coordinator more CPU beside the observatory; neither an order of processes nor "
    "processors of their own mend the tail (ADR 8); what did was that no rank waits for the journal (ADR 47)."
)


@contextmanager
def _loaded(running: Server) -> Iterator[dict[str, float]]:
    """500 browsers of one run each and 100,000 points a second, as long as the block lasts; its figures after it."""
    command = [sys.executable, str(SCRIPTS / "observatory_load.py"), running.telemetry, running.http]
    figures: dict[str, float] = {}
    with subprocess.Popen(
        [*command, str(_RATE), "0", str(_CLIENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_ENV,
        preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()  # steady
        before = sum(running.cpu_s())
        yield figures
        used = sum(running.cpu_s()) - before
        process.stdin.close()
        figures |= json.loads(process.stdout.readline())
    figures["observability_cores"] = used / figures["elapsed_s"]


def _barriers(script: Script) -> dict[str, float]:
    """p50 and p99 of 4,000 barriers."""
    command = [sys.executable, str(script.path), *script.args, str(_MEMBERS), str(_ROUNDS)]
    done = subprocess.run(command, env=_ENV, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _beside(stack: ExitStack) -> tuple[Variant, ...]:
    script = serve_coordinator(stack).load("barrier", _MEMBERS, BARRIERS)

    def alone() -> dict[str, float]:
        return _barriers(script)

    def beside(priority: str) -> dict[str, float]:
        with server(STRATA_OBSERVATORY_PRIORITY=priority) as running, _loaded(running) as figures:
            barriers = _barriers(script)
        return {**barriers, **{name: value for name, value in figures.items() if name != "accepted"}}

    return (
        ours(lambda: beside("normal"), label="with a loaded observatory, as by default"),
        ours(lambda: beside("background"), name="background", label="with a loaded observatory in the background"),
        floor("the coordinator alone", alone),
    )


BENCHMARK = Benchmark(
    name="planes",
    packages=("grpcio", "uvloop", "strata-engine", "uvicorn"),
    cases=(
        Case(
            name="4,000 barriers of 100 beside 100,000 points/s and 500 SSE clients",
            variants=_beside,
            targets=(
                Target(
                    metric="p99_s",
                    versus="floor",
                    at_most=1.5,
                    work="barrier of 100 beside a loaded observatory, p99",
                    profile=_BURSTS,
                ),
                Target(metric="points_per_s", versus=None, at_least=99_000),
                Target(metric="least_deltas_per_s", versus=None, at_least=3.0),
            ),
            repeats=3,
            warmups=0,
        ),
    ),
)
