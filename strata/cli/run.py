"""`strata run`: submit a script as a task, follow its log, end with its result. Starts a cluster if none answers."""

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from strata.cli.api import Api
from strata.cli.follow import LogFollower, print_lines
from strata.cli.options import DataDir, prepare
from strata.cli.up import cluster
from strata.client.channel import Channel, known_token
from strata.client.tasks import TasksClient, TaskView
from strata.config import Settings
from strata.errors import CoordinatorUnavailable, InvalidArgument, StrataError
from strata.types.tasks import TaskSpec, TaskStatus

__all__ = ["add_to"]

_POLL_S = 0.5
_LOOK_S = 0.05
_console = Console(stderr=True, highlight=False, soft_wrap=True)


def add_to(app: typer.Typer) -> None:
    # Whatever stands behind the script belongs to the script.
    app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})(run)


def run(
    script: Annotated[str, typer.Argument(help="A Python script, or any program.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its own arguments.")] = None,
    workers: Annotated[int, typer.Option("--workers", "-w", help="How many ranks.")] = 1,
    name: Annotated[str | None, typer.Option("--name", help="The task's name (default: the script's).")] = None,
    dataset: Annotated[str, typer.Option("--dataset", help="A registered dataset it reads.")] = "",
    launcher: Annotated[str, typer.Option("--launcher", help="Who starts the workers.")] = "local",
    max_restarts: Annotated[int, typer.Option("--max-restarts", help="Failures to recover from.")] = 3,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit and return; print the task's id.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Run a script on several workers and follow its log; the exit code is the task's."""
    settings = prepare(data_dir=data_dir)
    spec = TaskSpec(
        name=name or Path(script).stem,
        dataset_id=dataset,
        worker_count=workers,
        entrypoint=_entrypoint(script, arguments or []),
        launcher=launcher,
        max_restarts=max_restarts,
        working_dir=str(Path.cwd()),
    )
    with (
        _cluster(settings, embed=not detach) as (address, pause),
        Channel(address, token=known_token(settings)) as channel,
    ):
        task = _submit_and_follow(TasksClient(channel), spec, None if detach else Api(settings), pause)
    if task is not None:
        _tell(task)
        raise typer.Exit(0 if task.status is TaskStatus.COMPLETED else 1)


def _entrypoint(script: str, arguments: list[str]) -> tuple[str, ...]:
    """Absolute, and refused here when it is not there: a worker on another host would say so much later."""
    path = Path(script)
    if path.suffix == ".py":
        if not path.is_file():
            raise InvalidArgument(f"there is no script {script}")
        return ("python", str(path.resolve()), *arguments)
    program = shutil.which(script)
    if program is None:
        raise InvalidArgument(f"there is no program {script}", hint="Give a .py file, or a program on the PATH.")
    return (program, *arguments)


@contextlib.contextmanager
def _cluster(settings: Settings, *, embed: bool) -> Iterator[tuple[str, Callable[[], bool]]]:
    """The coordinator's address and a pause that returns True when the user wants to stop."""
    address = _find_coordinator(settings)
    if address is not None:
        yield address, _pause
        return
    if not embed:
        raise CoordinatorUnavailable(
            f"no coordinator answers at {settings.coordinator_addr}",
            hint="A detached task needs one that stays: start it with `strata up`.",
        )
    _console.print("[dim]no coordinator answers, starting one here[/]")
    with cluster(settings, with_agent=True) as supervisor:

        def pause() -> bool:
            until = time.monotonic() + _POLL_S
            while time.monotonic() < until and not supervisor.stopping:
                supervisor.look()
                time.sleep(_LOOK_S)
            return supervisor.stopping

        yield supervisor.endpoints["grpc"], pause


def _find_coordinator(settings: Settings) -> str | None:
    address = Api(settings).endpoints.get("grpc", settings.coordinator_addr)
    with Channel(address, patience_s=0.0) as channel:
        try:
            TasksClient(channel).list()
        except CoordinatorUnavailable:
            return None
    return address


def _pause() -> bool:
    try:
        time.sleep(_POLL_S)
    except KeyboardInterrupt:
        return True
    return False


def _submit_and_follow(
    tasks: TasksClient, spec: TaskSpec, api: Api | None, pause: Callable[[], bool]
) -> TaskView | None:
    """Returns the task when it has ended; None when it should only be submitted."""
    task_id = tasks.submit(spec)
    if api is None:
        sys.stdout.write(f"{task_id}\n")
        return None
    _console.print(f"[dim]task[/] {task_id}")
    follower = LogFollower(api, {"task_id": task_id})
    reason = ""
    while True:
        task = tasks.get(task_id)
        _follow(follower)
        if task.status.final:
            _follow_to_the_end(follower)
            return task
        if task.reason != reason:
            reason = task.reason
            _console.print(f"[dim]{task.status}: {reason}[/]")
        if pause():
            _console.print("[yellow]stopping the task …[/]")
            tasks.stop(task_id, "stopped by Ctrl-C in `strata run`")
            return _wait_for_end(tasks, task_id, follower)


def _wait_for_end(tasks: TasksClient, task_id: str, follower: LogFollower) -> TaskView:
    while not (task := tasks.get(task_id)).status.final:
        _follow(follower)
        time.sleep(_POLL_S)
    _follow_to_the_end(follower)
    return task


def _follow(follower: LogFollower) -> int:
    """A dead observatory is no reason to end: the task goes on, and its lines are there when it is back."""
    with contextlib.suppress(StrataError):
        rows = follower.more()
        print_lines(rows)
        return len(rows)
    return 0


def _follow_to_the_end(follower: LogFollower) -> None:
    """The last lines come in a little after the exit: until two looks in a row find none."""
    quiet = 0
    while quiet < 2:
        time.sleep(_POLL_S)
        quiet = 0 if _follow(follower) else quiet + 1


def _tell(task: TaskView) -> None:
    colour = "green" if task.status is TaskStatus.COMPLETED else "red"
    _console.print(f"[{colour}]{task.status}[/] {task.task_id}: {task.reason or 'done'}")
