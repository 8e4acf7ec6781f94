"""`strata sync`: sends runs that were logged with no server to one."""

from typing import Annotated

import typer
from rich.console import Console

from strata.cli import ids
from strata.cli.options import DataDir, reach

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command()(sync)


def sync(
    run_id: Annotated[
        str | None,
        typer.Argument(help="One run; all that wait in the data folder without it.", callback=ids.run_id),
    ] = None,
    address: Annotated[str | None, typer.Option("--to", help="The observatory's telemetry host:port.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Send runs that were kept on disk to the observatory. Safe to repeat."""
    from strata.worker.sync import sync as send

    console = Console(highlight=False)
    sent = send(run_id, address=address, settings=reach(data_dir=data_dir))
    for run in sent:
        console.print(f"{run.run_id}: {run.num_batches} batches")
    if not sent:
        console.print("Nothing waits here.")
