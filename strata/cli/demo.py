"""`strata demo`: the whole of Strata with a real training job to watch. Nothing in it is simulated."""

import threading
from typing import Annotated

import typer
from rich.console import Console

from strata.cli.extras import require_data, require_server
from strata.cli.options import DataDir, GrpcPort, Host, HttpPort, Slots, TelemetryPort, prepare
from strata.cli.up import cluster, serve
from strata.client.endpoints import announced

__all__ = ["add_to"]

_console = Console(highlight=False, soft_wrap=True)
_WORKERS = 4


def add_to(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    kill: Annotated[bool, typer.Option("--kill", help="Kill a worker now and then, and watch it come back.")] = False,
    host: Host = None,
    grpc_port: GrpcPort = None,
    http_port: HttpPort = None,
    telemetry_port: TelemetryPort = None,
    data_dir: DataDir = None,
    slots: Slots = None,
) -> None:
    """Start everything, and a real training job of 4 workers: a small transformer learns to tell stories."""
    # Each of the others is called as the setting that it gives.
    flags = {name: value for name, value in locals().items() if name != "kill"}
    from strata.demo.job import kill_now_and_then, submit_stories

    settings = prepare(**{**flags, "slots": slots or _WORKERS})
    require_server(with_engine=settings.ch_host is None)
    require_data()
    with (
        cluster(settings, with_agent=True) as supervisor,
        announced(supervisor.endpoints, settings.data_dir),
    ):
        coordinator = supervisor.endpoints["grpc"]
        job = submit_stories(settings, coordinator, num_workers=_WORKERS)
        _console.print(
            f"  training [bold]{job.task_id}[/] on dataset {job.dataset_id} with {job.num_workers} workers\n"
        )
        stop = threading.Event()
        killer = threading.Thread(
            target=kill_now_and_then,
            args=(coordinator, job.task_id, stop, lambda line: _console.print(f"[yellow]{line}[/]")),
        )
        if kill:
            killer.start()
        try:
            serve(supervisor)
        finally:
            stop.set()
            if kill:
                killer.join()
