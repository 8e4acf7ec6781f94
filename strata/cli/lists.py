"""`strata workers`, `datasets`, `tasks`, `runs`: what the dashboard shows, in a terminal."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from strata.cli import ids
from strata.cli.cluster import cluster_rows
from strata.cli.options import DataDir, Json, reach
from strata.cli.show import Column, ago, number, resumed, show_rows
from strata.client.api import Api
from strata.client.rest import Rest

__all__ = ["add_to"]

TaskId = Annotated[str, typer.Argument(help="The task's id, from `strata tasks`.", callback=ids.task_id)]


def add_to(app: typer.Typer) -> None:
    app.command()(workers)
    app.command()(datasets)
    app.command()(runs)
    group = typer.Typer(help="List tasks; stop or resume one.", invoke_without_command=True)
    group.callback()(tasks)
    group.command()(stop)
    group.command()(resume)
    app.add_typer(group, name="tasks")


def workers(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the workers: rank, status, step, heartbeat, shards, host and pid."""
    columns: list[Column] = [
        ("worker", lambda row: row["id"]),
        ("rank", lambda row: row.get("rank")),
        ("status", lambda row: row["status"]),
        ("task", lambda row: row.get("current_task")),
        ("step", lambda row: row.get("current_step")),
        ("epoch", lambda row: row.get("current_epoch")),
        ("shards", lambda row: row.get("assigned_shards")),
        ("heartbeat", lambda row: ago(row.get("last_heartbeat"))),
        ("cpu", lambda row: number((row.get("resources") or {}).get("cpu_percent"), " %")),
        ("host", lambda row: row.get("host")),
        ("pid", _pid),
    ]
    rows = cluster_rows(_rest(data_dir), "/api/workers")
    show_rows(rows, columns, as_json=as_json, empty="No workers yet. Start some with `strata run`.")


def _pid(row: Mapping[str, Any]) -> Any:
    """People kill by it. The process of a failed worker is mostly gone, and its number may be another one's by now."""
    return f"was {row['pid']}" if row.get("pid") and row["status"] == "failed" else row.get("pid")


def datasets(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the registered datasets."""
    columns: list[Column] = [
        ("dataset", lambda row: row["id"]),
        ("format", lambda row: row.get("format")),
        ("samples", lambda row: f"{row['total_samples']:,}"),
        ("shards", lambda row: f"{row['shard_count']:,}"),
        ("epoch", lambda row: row.get("epoch")),
        ("progress", lambda row: number(row.get("progress"), " %")),
        ("path", lambda row: row.get("path")),
    ]
    rows = cluster_rows(_rest(data_dir), "/api/datasets")
    show_rows(rows, columns, as_json=as_json, empty="No datasets yet. Register one with POST /api/datasets.")


def tasks(context: typer.Context, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List tasks; stop or resume one."""
    if context.invoked_subcommand is not None:
        return
    columns: list[Column] = [
        ("task", lambda row: row["id"]),
        ("status", lambda row: row["status"]),
        ("progress", lambda row: number(row.get("progress"), " %")),
        ("attempt", lambda row: row.get("attempt")),
        ("workers", lambda row: len(row.get("worker_ids") or ())),
        ("dataset", lambda row: row.get("dataset_id")),
        ("started", lambda row: ago(row.get("started_at"))),
        ("reason", lambda row: row.get("reason")),
    ]
    rows = cluster_rows(_rest(data_dir), "/api/tasks")
    show_rows(rows, columns, as_json=as_json, empty="No tasks yet. Submit one with `strata run train.py`.")


def stop(
    task_id: TaskId,
    now: Annotated[bool, typer.Option("--now", help="Give no time to save: SIGKILL at once.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Stop a task: its workers get SIGTERM, time to save, then SIGKILL."""
    Api(rest=_rest(data_dir)).stop(task_id, now=now)
    Console(highlight=False).print(f"stopping {task_id}")


def resume(task_id: TaskId, data_dir: DataDir = None) -> None:
    """Put a stopped or failed task back into the queue, to go on from its last good checkpoint."""
    Console(highlight=False).print(resumed(task_id, Api(rest=_rest(data_dir)).resume(task_id)), markup=False)


def runs(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the runs that have metrics."""
    columns: list[Column] = [
        ("run", lambda row: row["run_id"]),
        ("state", lambda row: row.get("state")),
        ("step", lambda row: row.get("latest_step")),
        ("series", lambda row: row.get("num_series")),
        ("points", lambda row: f"{row['num_points']:,}" if row.get("num_points") is not None else None),
        ("started", lambda row: ago(row.get("start_time"))),
        ("last point", lambda row: ago(row.get("last_event_time"))),
        ("reason", lambda row: row.get("reason")),
    ]
    show_rows(_rest(data_dir).get("/api/runs"), columns, as_json=as_json, empty="No runs yet. See strata.init().")


def _rest(data_dir: Any) -> Rest:
    return Rest(reach(data_dir=data_dir))
