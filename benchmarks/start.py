"""How long people wait for Strata to start: the first script, the command line, `strata up`. Every figure is of whole
processes, from their start to their end, or until the page answers.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours, peer
from benchmarks.measure import stopwatch
from tests.support.cluster import Cluster

__all__ = ["BENCHMARK"]


def _script(name: str, *args: object, requires: tuple[str, ...] = ()) -> Script:
    return Script(SCRIPTS / name, args=tuple(map(str, args)), requires=requires)


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-bench-start-")))


def first_script(stack: ExitStack) -> tuple[Variant, ...]:
    """Beside a `strata up` that runs, and with none."""
    cluster = stack.enter_context(Cluster(_folder(stack), "--no-agent"))
    cluster.wait_for_store()
    return (
        ours(_script("start_strata.py", cluster.folder), label="Strata, a server runs: 100 points are acknowledged"),
        ours(
            _script("start_strata.py", _folder(stack), "alone"),
            name="alone",
            label="Strata, no server: 100 points are on disk",
        ),
        peer("wandb", _script("start_wandb.py", requires=("wandb==0.31.0",)), label="wandb, offline (peer)"),
        floor("import grpc, connect", _script("start_floor.py", cluster.endpoints["telemetry"])),
    )


def _command(*words: str) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        with stopwatch() as watch:
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, timeout=120)
        return watch.values()

    return run


def command_line(stack: ExitStack) -> tuple[Variant, ...]:
    cluster = stack.enter_context(Cluster(_folder(stack), "--no-agent"))
    return (
        ours(_command("-m", "strata", "runs", "--data-dir", str(cluster.folder)), label="strata runs"),
        ours(_command("-m", "strata", "--help"), name="help", label="strata --help"),
        floor("import typer, rich", _command("-c", "import typer, rich.console, rich.table")),
    )


def _up(folder: Path) -> dict[str, float]:
    """Until the page answers; the children's CPU is not counted."""
    began = time.perf_counter()
    with Cluster(folder) as cluster:
        cluster.get("/health")
        return {"wall_s": time.perf_counter() - began}


def _up_cold() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="strata-bench-start-") as folder:
        return _up(Path(folder) / "data")


def server(stack: ExitStack) -> tuple[Variant, ...]:
    warm = _folder(stack)
    return (
        ours(partial(_up, warm), label="strata up, a folder that was used before"),
        ours(_up_cold, name="cold", label="strata up, a new folder"),
        floor("import fastapi, uvicorn, grpc", _command("-c", "import fastapi, uvicorn, grpc")),
    )


BENCHMARK = Benchmark(
    name="start",
    packages=("grpcio", "pydantic", "typer"),
    cases=(
        Case(
            name="five lines that log 100 points, from the start of the process to its end",
            variants=first_script,
            targets=(
                Target(
                    metric="wall_s", versus=None, at_most=1.0, work="script from its start to its first points sent"
                ),
                Target(
                    metric="wall_s",
                    of="alone",
                    versus=None,
                    at_most=1.0,
                    work="script with no server, to its first points on disk",
                ),
                Target(metric="wall_s", versus="wandb", at_most=1.0),
            ),
        ),
        Case(
            name="the command line, from the start of the process to its end",
            variants=command_line,
            targets=(Target(metric="wall_s", versus=None, at_most=1.0),),
        ),
        Case(name="strata up, until the page answers", variants=server, repeats=5),
    ),
)
