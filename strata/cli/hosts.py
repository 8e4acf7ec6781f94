"""`strata hosts` and `strata drain`: which hosts there are, and how one is emptied without losing a step."""

from typing import Annotated, Any

import typer
from rich.console import Console

from strata.cli import ids
from strata.cli.cluster import cluster_rows
from strata.cli.options import DataDir, Json, reach
from strata.cli.show import Column, show_rows
from strata.cli.spans import parse_span
from strata.client.rest import Rest, path_part

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command()(hosts)
    app.command()(drain)


def hosts(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the hosts: slots, tasks, and which of them go away."""
    columns: list[Column] = [
        ("host", lambda row: row["id"]),
        ("name", lambda row: row["hostname"]),
        ("state", lambda row: row["state"]),
        ("slots", lambda row: row["slots"]),
        ("launcher", lambda row: row["launcher"]),
        ("tasks", lambda row: ", ".join(row["tasks"])),
        ("draining", lambda row: row["draining"]),
    ]
    rows = cluster_rows(Rest(reach(data_dir=data_dir)), "/api/hosts")
    show_rows(rows, columns, as_json=as_json, empty="No hosts yet. Start one with `strata agent`.")


def drain(
    host: Annotated[
        str, typer.Argument(help="The host's name or its agent's id, from `strata hosts`.", callback=ids.host_id)
    ],
    deadline: Annotated[
        str | None, typer.Option("--deadline", help="When it goes away: 30, 90s, 10m, 2h (default: when it is empty).")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Shown with the tasks that leave it.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="It stays after all.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Empty a host: nothing more is placed there, and its tasks save at an agreed step and go on elsewhere.

    No step is lost. Ranks that have not left when the deadline is near get SIGTERM, and SIGKILL when it has come.
    """
    path = f"/api/hosts/{path_part(host)}"
    body: dict[str, Any] = {"reason": reason or "drained by the user"}
    if deadline is not None:
        body["deadline_s"] = parse_span("--deadline", deadline)
    api = Rest(reach(data_dir=data_dir))
    api.post(f"{path}/undrain" if undo else f"{path}/drain", {} if undo else body)
    Console(highlight=False).print(f"{host} stays" if undo else f"draining {host}", markup=False)
