"""`strata fork`: a new task from a checkpoint of another one, with changed config or without the batches of a spike."""

import json
from typing import Annotated, Any

import typer

from strata.cli import ids
from strata.cli.attend import Attendance, task_cluster, whisper
from strata.cli.options import DataDir, reach
from strata.cli.run import workers_of
from strata.client.tasks import TasksClient
from strata.errors import InvalidArgument
from strata.types.forks import ForkRequest, read_skip

__all__ = ["add_to"]

_STEP_HELP = "Begin with the newest good checkpoint at or before this step. Default: the newest that --skip allows."
_SET_HELP = (
    "A changed config value, such as lr=1e-4; may be repeated. Numbers, true, false, null and JSON are read as such. "
    "The script finds it in run.config; where its command names the option (--lr), it is changed there, too."
)
_SKIP_HELP = (
    "Leave out the global batches that the task trained on in these steps, such as 1200..1260; may be repeated. "
    "Counted as one batch of the loader per step."
)


def add_to(app: typer.Typer) -> None:
    app.command()(fork)


def fork(
    task_id: Annotated[
        str, typer.Argument(help="The task to fork, from `strata tasks`; it may be running.", callback=ids.task_id)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="More arguments for the script, behind `--`: strata fork TASK -- --lr 1")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", min=0, help=_STEP_HELP)] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", metavar="ID", help="Begin with this very one.")] = "",
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=_SET_HELP)] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", metavar="FIRST..LAST", help=_SKIP_HELP)] = None,
    name: Annotated[str, typer.Option("--name", help="The new task's name (default: the task's).")] = "",
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit and return; print the new task's id.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Start a new task from a checkpoint of another one and its place in the data, and follow its log.

    The other task is not touched, and may go on; the checkpoint is read where it lies, and kept until the new task has
    saved its own.
    """
    asked = ForkRequest(
        step=step,
        checkpoint_id=checkpoint,
        changes=dict(map(read_change, changes or ())),
        skip=tuple(map(read_skip, skip or ())),
        name=name,
        arguments=tuple(arguments or ()),
    )
    settings = reach(data_dir=data_dir)
    with task_cluster(settings, embed=not detach, workers=workers_of(settings, task_id)) as here:
        tasks = TasksClient(here.channel)
        for key in sorted(asked.changes.keys() - tasks.get(task_id).spec.config.keys()):
            whisper(f"the config of {task_id} has no {key!r}: it is added, and the script must read it")
        made, begins = tasks.fork(task_id, asked)
        whisper(f"task {made}, from step {begins} of {task_id}")
        if detach:
            typer.echo(made)
            return
        attendance = Attendance(tasks, made, settings, here, "strata fork")
        task = attendance.run()
    attendance.end(task)


def read_change(text: str) -> tuple[str, Any]:
    """KEY=VALUE; what is no JSON is text."""
    key, equals, value = text.partition("=")
    if not (equals and key.strip()):
        raise InvalidArgument(f"{text!r} changes nothing", hint="Write --set KEY=VALUE, such as --set lr=1e-4.")
    try:
        return key.strip(), json.loads(value, parse_constant=_no_number)
    except ValueError:
        return key.strip(), value


def _no_number(text: str) -> float:
    """NaN and Infinity are no JSON: the config would be unreadable elsewhere."""
    raise ValueError(text)
