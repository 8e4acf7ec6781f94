"""The two planes beside each other: what a loaded observatory costs a barrier of the coordinator.

All on this machine's cores: coordinator, ranks, observatory, store, and the load on the observatory, which stands for
other machines and takes only the time that nobody else wants for that. Nothing is pinned to a core. The observatory and
its store run twice, as they do by default and with STRATA_OBSERVATORY_PRIORITY=background, where they are like their
load. What else was tried stands in docs/adr/0008.

Ranks of other hosts have processors of their own: here they come before everybody else, and between two barriers they
let the others have theirs. Ranks of this host share its processors with the page like any other process, and meet again
at once.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from benchmarks.coordinator import BARRIERS
from benchmarks.coordinator import serve as serve_coordinator
from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours
from benchmarks.scripts.observatory_server import Server, server
from benchmarks.venvs import PeerUnavailable

__all__ = ["BENCHMARK"]

_ENV = os.environ | {"PYTHONPATH": str(SCRIPTS.parent.parent)}
_MEMBERS = 100
_ROUNDS = 4_000
_PAUSE_MS = 2
_RATE = 100_000
_CLIENTS = 500
_OTHER_HOSTS = "the coordinator waits 3 us for a processor, 20 at p99; why the rest takes longer is not known (ADR 8)."
_SAME_HOST = (
    "it is the ranks that wait: where both processors are taken the kernel puts them behind the coordinator, or behind "
    "the observatory until its next tick; to pin who serves the page mends that, and leaves it seconds behind (ADR 8)."
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


def _come_first() -> None:
    """Right above the coordinator."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))


def _barriers(script: Script, *, elsewhere: bool) -> dict[str, float]:
    """p50 and p99 of 4,000 barriers."""
    command = [sys.executable, str(script.path), *script.args, str(_MEMBERS), str(_ROUNDS)]
    command += [str(_PAUSE_MS)] if elsewhere else []
    first = _come_first if elsewhere else None
    if elsewhere and os.geteuid() != 0:
        raise PeerUnavailable("ranks of other hosts come before everybody, which takes root")
    done = subprocess.run(command, env=_ENV, check=True, capture_output=True, text=True, preexec_fn=first)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _beside(stack: ExitStack, *, elsewhere: bool) -> tuple[Variant, ...]:
    script = serve_coordinator(stack).load("barrier", _MEMBERS, BARRIERS)

    def alone() -> dict[str, float]:
        return _barriers(script, elsewhere=elsewhere)

    def beside(priority: str) -> dict[str, float]:
        with server(STRATA_OBSERVATORY_PRIORITY=priority) as running, _loaded(running) as figures:
            barriers = _barriers(script, elsewhere=elsewhere)
        return {**barriers, **{name: value for name, value in figures.items() if name != "accepted"}}

    return (
        ours(lambda: beside("normal"), label="with a loaded observatory, as by default"),
        ours(lambda: beside("background"), name="background", label="with a loaded observatory in the background"),
        floor("the coordinator alone", alone),
    )


def _case(whose: str, *, elsewhere: bool, profile: str) -> Case:
    return Case(
        name=f"4,000 barriers of 100 {whose} beside 100,000 points/s and 500 SSE clients",
        variants=partial(_beside, elsewhere=elsewhere),
        targets=(
            Target(
                metric="p99_s",
                versus="floor",
                at_most=1.5,
                work=f"barrier of 100 {whose} beside a loaded observatory, p99",
                profile=profile,
            ),
            Target(metric="points_per_s", versus=None, at_least=99_000),
            Target(metric="least_deltas_per_s", versus=None, at_least=3.0),
        ),
        repeats=5,
        warmups=0,
    )


BENCHMARK = Benchmark(
    name="planes",
    packages=("grpcio", "uvloop", "strata-engine", "uvicorn"),
    cases=(
        _case("ranks of other hosts", elsewhere=True, profile=_OTHER_HOSTS),
        _case("ranks of the same two cores", elsewhere=False, profile=_SAME_HOST),
    ),
)
