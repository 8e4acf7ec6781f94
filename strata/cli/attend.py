"""A task in a terminal: the cluster it runs on, its lines as they come, what Ctrl-C does, and how it ended."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn

import typer
from rich.console import Console

from strata.cli.follow import LogFollower, print_lines
from strata.cli.up import cluster, stop_signals
from strata.client.api import Api
from strata.client.channel import Channel
from strata.client.endpoints import Endpoints, find_endpoints, folder_endpoints
from strata.client.leaders import split_addresses
from strata.client.rest import Rest
from strata.client.tasks import TasksClient, TaskView
from strata.config import SETTINGS, Settings
from strata.errors import CoordinatorUnavailable, InvalidArgument, StrataError, UnknownTask
from strata.network import is_loopback, split_address
from strata.types.tasks import TaskStatus

__all__ = ["Attendance", "Stops", "TaskCluster", "answers", "task_cluster", "whisper"]

_POLL_S = 0.5
_LOOK_S = 0.05
_ASKS = 20  # for a verdict: the observatory hears of an end a moment later
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
_console = Console(stderr=True, highlight=False, soft_wrap=True)


class Stops:
    """Counts Ctrl-C and SIGTERM. At the third one the command ends without waiting for the task."""

    def __init__(self) -> None:
        self.first = ""
        self.count = 0
        self._came = threading.Event()

    def ask(self, number: int, frame: object) -> None:
        del frame
        self.first = self.first or _NAMES[signal.Signals(number)]
        self.count += 1
        self._came.set()
        if self.count > 2:
            raise KeyboardInterrupt

    def wait(self, seconds: float) -> None:
        """Waits for the next stop that nobody has waited for."""
        if self._came.wait(seconds):
            self._came.clear()


class TaskCluster(NamedTuple):
    """Where the cluster listens, a channel to it, the stops that a user asks for, and a pause between two looks at a
    task."""

    endpoints: Endpoints
    channel: Channel
    stops: Stops
    pause: Callable[[], None]


@contextlib.contextmanager
def task_cluster(settings: Settings, *, embed: bool, workers: int) -> Iterator[TaskCluster]:
    """The cluster that answers, or one that is started here, with slots for this many workers."""
    known = find_endpoints(settings)
    stops = Stops()
    if answers(known):
        with stop_signals(stops.ask), Channel(known.grpc, access=known.access) as channel:
            yield TaskCluster(known, channel, stops, lambda: stops.wait(_POLL_S))
        return
    if known.asked and not is_loopback(split_address(split_addresses(known.grpc)[0])[0]):
        raise CoordinatorUnavailable(f"no coordinator answers at {known.grpc}")
    if not embed:
        raise CoordinatorUnavailable(
            f"no coordinator answers at {known.grpc}",
            hint="A detached task needs one that stays: start it with `strata up`.",
        )
    whisper("no coordinator answers, starting one here")
    with cluster(_with_slots(settings, workers), with_agent=workers > 0) as supervisor, stop_signals(stops.ask):

        def pause() -> None:
            until, before = time.monotonic() + _POLL_S, stops.count
            while time.monotonic() < until and stops.count == before:
                supervisor.look()
                stops.wait(_LOOK_S)

        started = folder_endpoints(settings)
        assert started is not None
        with Channel(started.grpc, access=started.access) as channel:
            yield TaskCluster(started, channel, stops, pause)


def _with_slots(settings: Settings, workers: int) -> Settings:
    if settings.slots is None:
        return settings.but(slots=max(workers, 4, os.cpu_count() or 1))
    if settings.slots < workers:
        raise InvalidArgument(
            f"{workers} workers do not fit into {settings.slots} slots",
            hint="STRATA_SLOTS says how many there are: raise or unset it, or ask for fewer workers.",
        )
    return settings


def answers(known: Endpoints) -> bool:
    if not known.grpc:
        return False
    with Channel(known.grpc, access=known.access, patience_s=0.0) as channel:
        try:
            TasksClient(channel).list()
        except CoordinatorUnavailable:
            return False
    return True


class Attendance:
    """A task from its submission to its end, with its lines on the terminal. `command` is what the user typed."""

    def __init__(self, tasks: TasksClient, task_id: str, settings: Settings, here: TaskCluster, command: str) -> None:
        self._tasks = tasks
        self._task_id = task_id
        self._rest = Rest(settings)
        self._lines = LogFollower(self._rest, {"task_id": task_id})
        self._stops, self._pause = here.stops, here.pause
        default = SETTINGS["data_dir"].default
        self._folder = f" --data-dir {settings.data_dir}" if settings.data_dir != default else ""
        self._command = command
        self._advice = ""

    def run(self, look: Callable[[TaskView], None] = lambda _: None) -> TaskView:
        """`look` sees the task again and again, and may give it up by raising."""
        reason = ""
        while not (task := self._look()).status.final:
            if task.reason != reason:
                reason = task.reason
                whisper(f"{task.status}: {reason}")
            if self._stops.count:
                by = self._stops.first
                _console.print(
                    f"[yellow]{by}: stopping the task.[/] Its ranks save and leave; Ctrl-C again ends them at once."
                )
                return self.stop(f"stopped by {by} in `{self._command}`")
            look(task)
            self._pause()
        _follow_to_the_end(self._lines)
        if task.status is TaskStatus.FAILED:
            self._advice = self._ask_advice()
        return task

    def stop(self, reason: str) -> TaskView:
        """Returns when it has ended."""
        self._tasks.stop(self._task_id, reason)
        stop_at, hurried = -1, False
        while not (task := self._look()).status.final:
            if task.course.stop_at != stop_at:
                stop_at = task.course.stop_at
                whisper(f"its ranks save and leave together at step {stop_at}")
            if self._stops.count > 1 and not hurried:
                hurried = True
                _console.print("[yellow]ending its ranks at once[/], without a save")
                self._tasks.stop(self._task_id, reason, hurry=True)
            self._pause()
        _follow_to_the_end(self._lines)
        return task

    def end(self, task: TaskView) -> NoReturn:
        """Says how it ended, what to do about it, and how to go on. The command's exit code is the task's."""
        colour = "green" if task.status is TaskStatus.COMPLETED else "red"
        _console.print(f"[{colour}]{task.status}[/] {task.task_id}:", end=" ")
        _console.print(task.reason or "done", markup=False)
        if self._advice:
            _console.print(self._advice, markup=False)
        if task.status is not TaskStatus.COMPLETED:
            where = f"its checkpoint of step {task.saved_step}" if task.saved_step is not None else "the start"
            whisper(f"`strata resume {task.task_id}{self._folder}` goes on from {where}")
        raise typer.Exit(0 if task.status is TaskStatus.COMPLETED else 1)

    def _ask_advice(self) -> str:
        """The observatory's, as `strata why` has it; none where there is no observatory."""
        with contextlib.suppress(StrataError):
            for _ in range(_ASKS):
                with contextlib.suppress(UnknownTask):
                    verdict = Api(rest=self._rest).why(self._task_id)
                    if verdict["kind"] not in ("none", "waiting"):
                        return str(verdict["advice"])
                time.sleep(_POLL_S)
        return ""

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


def whisper(line: str) -> None:
    _console.print(line, style="dim", markup=False)
