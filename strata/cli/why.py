"""`strata why`: why a task failed, was restarted or stands still, in one sentence, and what was seen."""

import json
import sys
import time
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console

from strata.cli import ids
from strata.cli.cluster import hear_coordinator
from strata.cli.options import DataDir, Json, reach
from strata.cli.spans import parse_span
from strata.client.api import Api
from strata.client.rest import Rest

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command()(why)


def why(
    task_id: Annotated[
        str, typer.Argument(help="The task's id, from `strata tasks`.", metavar="TASK", callback=ids.task_id)
    ],
    ago: Annotated[str | None, typer.Option("--ago", help="About how long ago: 90s, 10m, 2h. Else the newest.")] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Say why a task failed, was restarted or stands still: the first cause, who was hit, the cost, what to do."""
    at = None if ago is None else time.time() - parse_span("--ago", ago)
    rest = Rest(reach(data_dir=data_dir))
    hear_coordinator(rest)
    verdict = Api(rest=rest).why(task_id, at)
    if as_json:
        json.dump(verdict, sys.stdout)
        sys.stdout.write("\n")
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(verdict["sentence"])
    for seen in verdict["evidence"]:
        console.print(f"  {_when(seen)}{seen['source']}: {seen['text']}", style="dim")


def _when(seen: dict[str, Any]) -> str:
    if seen["at_ms"] is None:
        return ""
    return datetime.fromtimestamp(seen["at_ms"] / 1000).strftime("%H:%M:%S ")  # noqa: DTZ006 - a reader's own clock
