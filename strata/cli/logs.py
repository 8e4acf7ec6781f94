"""`strata logs`: what coordinator, agents and workers have printed, and why there is nothing where there is nothing."""

import time
from typing import Annotated, Any

import typer
from rich.console import Console

from strata.cli import ids
from strata.cli.cluster import hear_coordinator
from strata.cli.follow import LogFollower, print_lines
from strata.cli.options import DataDir, Json, reach
from strata.cli.show import show_rows
from strata.client.rest import Rest, path_part, query_of

__all__ = ["add_to"]

_FOLLOW_S = 1.0


def add_to(app: typer.Typer) -> None:
    app.command()(logs)


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines until Ctrl-C.")] = False,
    task: Annotated[str | None, typer.Option("--task", help="Only this task's lines.", callback=ids.task_id)] = None,
    worker: Annotated[
        str | None, typer.Option("--worker", help="Only this worker's lines.", callback=ids.worker_id)
    ] = None,
    level: Annotated[str | None, typer.Option("--level", help="Only this level: error, warn, info, debug.")] = None,
    search: Annotated[str | None, typer.Option("--search", "-q", help="Only lines that contain this.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many lines.")] = 100,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show the newest log lines of coordinator, agents and workers."""
    rest = Rest(reach(data_dir=data_dir))
    whose = {"task_id": task, "worker_id": worker}
    follower = LogFollower(rest, {**whose, "level": level, "q": search})
    rows = follower.first(limit)
    why = "" if rows else _why_none(rest, {name: given for name, given in whose.items() if given is not None})
    if as_json:
        show_rows(rows, [], as_json=True, empty="")
        return
    print_lines(rows)
    if why:
        Console(stderr=True, highlight=False, soft_wrap=True).print(why, markup=False)
    while follow:
        time.sleep(_FOLLOW_S)
        print_lines(follower.more())


def _why_none(rest: Rest, whose: dict[str, Any]) -> str:
    """A sentence; an error for a task or a worker that nobody knows. Lines outlive both."""
    if rest.get(f"/api/logs?{query_of({**whose, 'limit': 1})}"):
        return "No line matches."
    if not whose:
        return "No lines yet."
    hear_coordinator(rest)
    task, worker = whose.get("task_id"), whose.get("worker_id")
    if task is not None:
        rest.get(f"/api/tasks/{path_part(task)}")
    if (
        worker is not None
        and not rest.get(f"/api/fleet/workers?{query_of({'worker_id': worker, 'limit': 1})}")["workers"]
    ):
        raise ids.unknown_worker(f"no worker {worker!r} is known")
    named = " and ".join(f"{noun} {given}" for noun, given in (("task", task), ("worker", worker)) if given is not None)
    return f"No lines of {named} yet."
