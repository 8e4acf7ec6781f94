"""`strata chaos`: a failure drill with a pass/fail table, on the running cluster or on one of its own."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from strata.cli.drills import DRILLS, SIZE_DRILLS, Drill, DrillResult, Site
from strata.cli.extras import require_data
from strata.cli.options import DataDir, reach
from strata.cli.second_host import SecondHost
from strata.cli.up import cluster
from strata.client.channel import Channel
from strata.client.endpoints import Endpoints, folder_endpoints
from strata.client.rest import Rest
from strata.client.tasks import TasksClient
from strata.config import Settings
from strata.errors import TaskFailed

__all__ = ["add_to"]

_console = Console(highlight=False, soft_wrap=True)
_LOOK_S = 0.05
_WORKERS = 4
_HANG_S = 15.0  # far longer than a step of the drill's task takes, also while one of the parts is away


def add_to(app: typer.Typer) -> None:
    app.command()(chaos)


def chaos(data_dir: DataDir = None) -> None:
    """Kill a worker, stop one so that it hangs, kill agent, coordinator and observatory under a training job, let a
    host come and go, and check what is promised.

    Uses the running cluster of the data folder; without one, starts a cluster of its own in a temporary folder.
    """
    settings = reach(data_dir=data_dir)
    require_data()
    with _site(settings) as (here, endpoints):
        results = _drill(here, endpoints)
    _show(results)
    if not all(result.passed for _, result in results):
        raise typer.Exit(1)


@contextlib.contextmanager
def _site(settings: Settings) -> Iterator[tuple[Settings, Endpoints]]:
    endpoints = folder_endpoints(settings)
    if endpoints is not None:
        yield settings, endpoints
        return
    with tempfile.TemporaryDirectory(prefix="strata-chaos-") as folder:
        fresh = settings.but(data_dir=Path(folder), grpc_port=0, http_port=0, telemetry_port=0, slots=_WORKERS)
        with cluster(fresh, with_agent=True) as supervisor, _watched(supervisor.look):
            started = folder_endpoints(fresh)
            assert started is not None
            yield fresh, started


@contextlib.contextmanager
def _watched(look: Callable[[], None]) -> Iterator[None]:
    """The supervisor looks after its children while the drills run in this thread."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_S):
            look()

    thread = threading.Thread(target=watch, name="supervisor")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _drill(settings: Settings, endpoints: Endpoints) -> list[tuple[Drill, DrillResult]]:
    from strata.demo.spirals import submit_spirals

    coordinator = endpoints.grpc
    # One worker more than there are slots for, until a second host comes.
    job = submit_spirals(settings, coordinator, num_workers=_WORKERS + 1, hang_timeout_s=_HANG_S)
    _console.print(
        f"training [bold]{job.task_id}[/] with up to {_WORKERS + 1} workers; killing begins when it has made steps\n"
    )
    host = SecondHost(settings, endpoints)
    site = Site(settings.data_dir, Rest(settings), endpoints, job.task_id, host)
    try:
        if site.wait_for_steps(5) is None:
            raise TaskFailed(f"the drill's task made no steps: {site.task()['reason']}")
        smaller = site.task()["size"] <= _WORKERS
        results = []
        for drill in (*DRILLS, *(SIZE_DRILLS if smaller else ())):
            _console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {drill.name} …")
            results.append((drill, drill.run(site)))
        return results
    finally:
        host.close()
        with Channel(coordinator, access=endpoints.access) as channel:
            TasksClient(channel).stop(job.task_id, "the drill is over")


def _show(results: list[tuple[Drill, DrillResult]]) -> None:
    titles = ("drill", "promise", "seen after", "training on after", "result", "detail")
    table = Table(*titles, box=None, header_style="dim")
    for drill, result in results:
        verdict = "[green]pass[/]" if result.passed else "[red]FAIL[/]"
        seconds = (_seconds(result.detected_s), _seconds(result.recovered_s))
        table.add_row(drill.name, drill.promise, *seconds, verdict, result.detail)
    _console.print()
    _console.print(table)


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f} s"
