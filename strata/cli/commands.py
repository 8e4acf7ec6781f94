"""Every command by its line in `strata --help`, which loads no command: one is imported when it is called."""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

__all__ = ["LINES", "Commands", "Line", "load"]


class Line(NamedTuple):
    """The file of this folder that has the command, the heading that lists it, and the first paragraph of its help: a
    test compares it with the command's own."""

    part: str
    says: str
    panel: str | None = None


# In the order of `strata --help`.
LINES = {
    "up": Line("up", "Start coordinator, observatory and a local agent, and keep them running until Ctrl-C."),
    "demo": Line(
        "demo", "Start everything, and a real training job of 4 workers: a small transformer learns to tell stories."
    ),
    "init": Line(
        "init", "Write a first train.py: it trains a small network, saves checkpoints, and goes on where it was killed."
    ),
    "run": Line("run", "Run a script on several workers and follow its log; the exit code is the task's."),
    "resume": Line("run", "Go on with a stopped or failed task from its last good checkpoint, and follow its log."),
    "fork": Line(
        "fork", "Start a new task from a checkpoint of another one and its place in the data, and follow its log."
    ),
    "chaos": Line(
        "chaos",
        "Kill a worker, stop one so that it hangs, kill agent, coordinator and observatory under a training job, let a "
        "host come and go, and check what is promised.",
    ),
    "sync": Line("sync", "Send runs that were kept on disk to the observatory. Safe to repeat."),
    "workers": Line("lists", "List the workers: rank, status, step, heartbeat, shards, host and pid.", "Inspect"),
    "datasets": Line("lists", "List the registered datasets.", "Inspect"),
    "runs": Line("lists", "List the runs that have metrics.", "Inspect"),
    "logs": Line("logs", "Show the newest log lines of coordinator, agents and workers.", "Inspect"),
    "why": Line(
        "why",
        "Say why a task failed, was restarted or stands still: the first cause, who was hit, the cost, what to do.",
        "Inspect",
    ),
    "hosts": Line("hosts", "List the hosts: slots, tasks, and which of them go away.", "Inspect"),
    "drain": Line(
        "hosts",
        "Empty a host: nothing more is placed there, and its tasks save at an agreed step and go on elsewhere.",
        "Cluster",
    ),
    "import": Line(
        "transfer",
        "Bring runs of W&B, MLflow, Neptune, TensorBoard or a CSV into Strata. A repeated import brings what is new.",
        "Metrics",
    ),
    "export": Line("transfer", "Write a run's raw points to a CSV or Parquet file.", "Metrics"),
    "sql": Line(
        "sql",
        "Ask metric_points, runs and logs in SQL. It can only read; at most 10,000 rows, 10 seconds and 1 GiB.",
        "Metrics",
    ),
    "mcp": Line(
        "mcp",
        "Serve assistants by the Model Context Protocol on stdin and stdout, with the rights of the token found here.",
        "Metrics",
    ),
    "coordinator": Line(
        "nodes", "Run the control plane alone: membership, barriers, shards, checkpoints, tasks.", "Cluster"
    ),
    "observatory": Line(
        "nodes", "Run the observability plane alone: metrics, logs, REST and the dashboard.", "Cluster"
    ),
    "agent": Line(
        "nodes", "Run this host's agent: it starts workers, captures their output and watches the machine.", "Cluster"
    ),
    "doctor": Line(
        "doctor",
        "Check versions, machine, data folder, ports, cluster, clock, checkpoint store and ClickHouse; exit code 1 "
        "when something has failed.",
        "Inspect",
    ),
    "tasks": Line("lists", "List tasks; stop or resume one.", "Inspect"),
    "token": Line("token", "Tokens for others: hosts that join, people who look or work.", "Cluster"),
    "checkpoints": Line("checkpoints", "List, verify, pin, remove, export and import checkpoints.", "Inspect"),
    "state": Line("state", "Inspect the coordinator's durable state.", "Inspect"),
    "config": Line("config", "Look at the settings.", "Inspect"),
}


def load(name: str) -> Any:
    """The command itself, with its parameters."""
    app = typer.Typer()
    import_module(f"strata.cli.{LINES[name].part}").add_to(app)
    return get_group(app).commands[name]


class Commands(TyperGroup):
    """All of them by their lines. The one that is called, or whose words a shell completes, is loaded in its place."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, line in LINES.items():
            self.add_command(TyperCommand(name, help=line.says, rich_help_panel=line.panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in LINES:
            self.add_command(load(args[0]))
        return super().resolve_command(ctx, args)
