"""`strata run`: submit a script as a task, follow its log, end with its result. Starts a cluster if none answers,
and agents through another launcher if asked to."""

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from strata.cli.api import Api
from strata.cli.fleet import Fleet, FleetRequest, open_fleet
from strata.cli.follow import LogFollower, print_lines
from strata.cli.options import DataDir, prepare
from strata.cli.up import cluster
from strata.client.channel import Channel, known_token
from strata.client.tasks import TasksClient, TaskView
from strata.config import Settings
from strata.errors import CoordinatorUnavailable, InvalidArgument, StrataError
from strata.types.tasks import LAUNCHERS, TaskSpec, TaskStatus

__all__ = ["add_to"]

_POLL_S = 0.5
_LOOK_S = 0.05
_OPTION_HELP = "NAME=VALUE for the launcher: host=a,b for ssh, sbatch's own for slurm, address=… for ray."
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
    launcher: Annotated[
        str, typer.Option("--launcher", help="Who starts the workers: local, slurm, ssh, ray.")
    ] = "local",
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="Agents to start (default 1, or one per host).")
    ] = None,
    options: Annotated[list[str] | None, typer.Option("--launcher-option", "-o", help=_OPTION_HELP)] = None,
    shared_dir: Annotated[
        Path | None, typer.Option("--shared-dir", help="A folder that all nodes see (default: in the data folder).")
    ] = None,
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
        launcher=_known(launcher, detach=detach),
        max_restarts=max_restarts,
        working_dir=str(Path.cwd()),
    )
    fleet = FleetRequest(
        launcher=launcher, workers=workers, nodes=nodes, options=tuple(options or ()), shared_dir=shared_dir
    )
    agents = open_fleet(fleet, settings, _whisper)
    with (
        _cluster(settings, embed=not detach, workers=workers if launcher == "local" else 0) as (endpoints, pause),
        Channel(endpoints["grpc"], token=known_token(settings)) as channel,
    ):
        tasks = TasksClient(channel)
        if detach:
            sys.stdout.write(f"{tasks.submit(spec)}\n")
            return
        task_id = tasks.submit(spec)
        _console.print(f"[dim]task[/] {task_id}")
        following = _Following(tasks, task_id, LogFollower(Api(settings), {"task_id": task_id}), pause)
        task = following.run() if agents is None else _on_agents(agents, following, endpoints, known_token(settings))
    _tell(task)
    raise typer.Exit(0 if task.status is TaskStatus.COMPLETED else 1)


def _known(launcher: str, *, detach: bool) -> str:
    """Before a cluster is started for it."""
    if launcher not in LAUNCHERS:
        raise InvalidArgument(f"launcher {launcher!r} is unknown", hint=f"Known: {', '.join(LAUNCHERS)}.")
    if detach and launcher != "local":
        raise InvalidArgument(
            f"--detach with --launcher {launcher} would leave agents that nobody stops",
            hint="Leave out --detach, or run `strata agent` on the nodes and submit to those with --launcher local.",
        )
    return launcher


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
def _cluster(
    settings: Settings, *, embed: bool, workers: int
) -> Iterator[tuple[Mapping[str, str], Callable[[], bool]]]:
    """Where the cluster listens, and a pause that returns True when the user wants to stop. One that is started here
    has slots for this many workers."""
    known = Api(settings).endpoints
    address = known.get("grpc", settings.coordinator_addr)
    if _answers(address):
        with _stop_signals() as asked:
            yield {**known, "grpc": address}, lambda: asked.wait(_POLL_S)
        return
    if not embed:
        raise CoordinatorUnavailable(
            f"no coordinator answers at {settings.coordinator_addr}",
            hint="A detached task needs one that stays: start it with `strata up`.",
        )
    _console.print("[dim]no coordinator answers, starting one here[/]")
    with cluster(_with_slots(settings, workers), with_agent=workers > 0) as supervisor:

        def pause() -> bool:
            until = time.monotonic() + _POLL_S
            while time.monotonic() < until and not supervisor.stopping:
                supervisor.look()
                time.sleep(_LOOK_S)
            return supervisor.stopping

        yield supervisor.endpoints, pause


def _with_slots(settings: Settings, workers: int) -> Settings:
    if settings.slots is None:
        return settings.model_copy(update={"slots": max(workers, 4, os.cpu_count() or 1)})
    if settings.slots < workers:
        raise InvalidArgument(
            f"{workers} workers do not fit into {settings.slots} slots", hint="STRATA_SLOTS says how many there are."
        )
    return settings


def _answers(address: str) -> bool:
    with Channel(address, patience_s=0.0) as channel:
        try:
            TasksClient(channel).list()
        except CoordinatorUnavailable:
            return False
    return True


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """The first Ctrl-C or SIGTERM asks; a second one no longer waits for the task."""
    asked = threading.Event()

    def ask(number: int, frame: object) -> None:
        del number, frame
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_agents(agents: Fleet, following: "_Following", endpoints: Mapping[str, str], token: str) -> TaskView:
    """The task with agents of its own, which are gone afterwards."""
    try:
        agents.start(endpoints, token)
        return following.run(agents.look)
    except StrataError as error:
        following.stop(error.message)
        raise
    finally:
        _whisper("stopping its agents")
        agents.stop()


class _Following:
    """A task from its submission to its end, with its lines on the terminal."""

    def __init__(self, tasks: TasksClient, task_id: str, lines: LogFollower, pause: Callable[[], bool]) -> None:
        self._tasks = tasks
        self._task_id = task_id
        self._lines = lines
        self._pause = pause

    def run(self, look: Callable[[TaskView], None] = lambda _: None) -> TaskView:
        """`look` sees the task again and again, and may give it up by raising."""
        reason = ""
        while not (task := self._look()).status.final:
            if task.reason != reason:
                reason = task.reason
                _whisper(f"{task.status}: {reason}")
            look(task)
            if self._pause():
                _console.print("[yellow]stopping the task …[/]")
                return self.stop("stopped by Ctrl-C in `strata run`")
        _follow_to_the_end(self._lines)
        return task

    def stop(self, reason: str) -> TaskView:
        """Returns when it has ended."""
        self._tasks.stop(self._task_id, reason)
        while not (task := self._look()).status.final:
            time.sleep(_POLL_S)
        _follow_to_the_end(self._lines)
        return task

    def _look(self) -> TaskView:
        task = self._tasks.get(self._task_id)
        _follow(self._lines)
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


def _whisper(line: str) -> None:
    _console.print(line, style="dim", markup=False)


def _tell(task: TaskView) -> None:
    colour = "green" if task.status is TaskStatus.COMPLETED else "red"
    _console.print(f"[{colour}]{task.status}[/] {task.task_id}: {task.reason or 'done'}")
