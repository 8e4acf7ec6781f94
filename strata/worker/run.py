"""`strata.init` and what it gives: a run that takes metrics, meets at barriers and knows when to stop. The same script
works in a task, under torchrun or Slurm, and alone with no server at all.
"""

import atexit
import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from strata.errors import InvalidArgument
from strata.logs import set_up_rank_logging
from strata.types.barriers import BarrierPolicy, BarrierResult
from strata.types.labels import tags_of
from strata.types.metrics import MAX_STEP
from strata.types.names import check_name, name_of
from strata.types.tasks import MAX_HANG_S, MIN_HANG_S
from strata.worker import belonging
from strata.worker.description import Description, check_arguments, config_of
from strata.worker.ending import Ending
from strata.worker.environment import Place, checkpoint_path, find_place, gang_address, gang_secret
from strata.worker.exit_notes import leave_note, take_note_back
from strata.worker.forking import changes_of, forking_of
from strata.worker.greeting import greet, how_to_send, whisper
from strata.worker.joining import join
from strata.worker.points import Unfit, shown, whole_step
from strata.worker.reporter import Reporter
from strata.worker.resume import Earlier, check_resume, find_earlier
from strata.worker.stacks import print_stacks_on_signal
from strata.worker.summary import Summary

if TYPE_CHECKING:
    from typing import Unpack

    from strata.checkpoint.manager import CheckpointManager
    from strata.checkpoint.options import CheckpointOptions
    from strata.checkpoint.spreading import Exchange
    from strata.worker.collective.gang import Gang
    from strata.worker.session import Session

__all__ = ["Run", "active_run", "barrier", "current_run", "finish", "init", "log", "section", "should_stop"]

_ARGUMENTS = ("project", "name", "config", "tags", "group", "job_type", "notes", "run_id", "resume")
_SAID = ("name", "config", "tags", "group", "job_type", "notes")
_current: "Run | None" = None
_starting = threading.Lock()
_ending = Ending()
_NO_FINISH = "the script ended without finish()"
_of_parents: list[Reporter] = []  # in a forked child: never closed here, because the parent still uses them


class Run(contextlib.AbstractContextManager["Run"]):
    """One run as one process sees it. `log` never blocks and never raises; everything else says what is wrong."""

    def __init__(self, place: Place, session: "Session | None", about: Description, earlier: Earlier | None) -> None:
        self.place = place
        self.rank = place.rank
        self.world_size = place.world_size
        self.id = place.run_id
        self.about = about
        self.config = about.config
        self.session = session
        self.resumed = earlier is not None
        self.forking = forking_of(place)
        self.exchange: Exchange | None = None  # the training framework's own group of ranks, where one was set up
        self._step = (earlier.step if earlier is not None else None) or 0
        self.is_over = False  # finish() was called, or the script ended
        self._pid = os.getpid()
        self._reporter: Reporter | None = Reporter(place, place.run_id)
        self.summary = Summary(self.summarize)
        self._tell("running")

    @property
    def reporter(self) -> Reporter:
        """A forked child gets its own when it first has something to say."""
        if self._reporter is None:
            self._reporter = Reporter(self.place, self.id, forked=True)
        return self._reporter

    @property
    def project(self) -> str:
        return self.about.project

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def step(self) -> int:
        """Of the last call of `log` or `progress`."""
        return self._step

    @property
    def dropped(self) -> int:
        """Points of this process that were not reported so far, all told: refused, or without room."""
        return self.reporter.dropped

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Notes metrics of a step (default: one more than the last). About a microsecond; the rest happens behind.
        A dict in the dict is taken as `outer/inner`. What is no metric is counted in `dropped`, and said once."""
        reporter = self.reporter
        try:
            if step is None:
                step = self._step + 1
            elif type(step) is not int or not 0 <= step < MAX_STEP:
                step = whole_step(step)
            self._step = step
            session = self.session
            if session is not None:
                session.step(step)
            reporter.log(values, step)
        except Unfit as error:
            reporter.refuse("run.log", str(error), _size_of(values))
        except Exception as error:  # a metric must never end a training
            reporter.refuse("run.log", f"{shown(values)} holds no names and numbers ({type(error).__name__})")

    def update(self, **changes: Any) -> None:
        """Says anew what the run is: name, config (added to what it has), tags, group, job_type, notes."""
        check_arguments("run.update", {name: 0 for name in changes if name not in _SAID}, _SAID)
        if "config" in changes:
            self.config.update(config_of(changes["config"]))
        if "tags" in changes:
            changes["tags"] = tags_of(changes["tags"])
        self.about = replace(self.about, **{**changes, "config": self.config})
        self.reporter.describe(self.about)

    def summarize(self, name: str, value: Any) -> None:
        """What `run.summary[name] = value` does."""
        self.reporter.summarize(name, value)

    def progress(self, step: int, *, epoch: int | None = None, percent: float | None = None) -> None:
        """How far the task is: shown on the dashboard, and what tells a hang from work."""
        self._step = step
        if self.session is not None:
            self.session.step(step, epoch=epoch, progress=percent)

    def barrier(
        self, name: str, step: int = 0, *, timeout_s: float | None = None, policy: BarrierPolicy = BarrierPolicy.FAIL
    ) -> BarrierResult | None:
        """Waits for all ranks. Raises BarrierBroken at once when one dies. Alone there is nobody to wait for."""
        session = self.session
        if session is None:
            return None
        with session.section(f"barrier {name}"[:100], at_barrier=True):
            expected = 0 if self.place.task_id else self.world_size
            barrier_id = name if self.place.task_id else f"{self.place.group[:60]}.{name}"
            return session.tie.barrier(
                session.member, barrier_id, step, expected=expected, timeout_s=timeout_s, policy=policy
            )

    def should_stop(self) -> bool:
        """True once the task was asked to stop, for all ranks from the same step on: save, then leave."""
        return self.session is not None and self.session.should_stop

    @property
    def stop_asked(self) -> bool:
        """This rank was asked to stop; for loops that tell the other ranks themselves."""
        return self.session is not None and self.session.stop_asked

    @contextlib.contextmanager
    def section(self, name: str, timeout: float | None = None) -> Iterator[None]:
        """`with run.section("eval"):` no step is expected in here, so nobody takes it for a hang. One that must not
        take longer than `timeout` seconds is a hang after that."""
        if timeout is not None and not MIN_HANG_S <= timeout <= MAX_HANG_S:
            raise InvalidArgument(f"timeout is {timeout}, it must be between {MIN_HANG_S:g} and {MAX_HANG_S:g} seconds")
        if self.session is None:
            yield
            return
        with self.session.section(name, timeout or 0.0):
            yield

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """`with run.waiting(): dist.all_reduce(…)`: what this rank waits for others is not its own work, so that a
        straggler can be told from those that wait for it. The gang, barriers and `world.wrap` do this themselves."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.note_wait(time.monotonic() - began)

    def note_wait(self, seconds: float) -> None:
        """The same, for who has measured it."""
        if self.session is not None:
            self.session.note_wait(seconds)

    def checkpoints(self, path: str | None = None, **options: "Unpack[CheckpointOptions]") -> "CheckpointManager":
        """CheckpointManager(path), by default in the task's own folder or bucket."""
        from strata.checkpoint.manager import CheckpointManager  # here and below: only for those who ask

        return CheckpointManager(path or checkpoint_path(self.place), **options)

    @cached_property
    def gang(self) -> "Gang":
        """Sums over all ranks, for scripts without a framework of their own. Collective: all ranks ask for it."""
        from strata.worker.collective.gang import Gang

        address, secret = gang_address(self.world_size), gang_secret(self.place, self.place.world_number)
        return Gang(self.rank, self.world_size, address, secret, given_up=self._peer_is_out, note_wait=self.note_wait)

    def _peer_is_out(self) -> bool:
        """All ranks end then: one that waits for the dead would be killed when its grace is over."""
        return self.session is not None and self.session.peer_is_out

    def finish(self, exit_code: int = 0, *, reason: str = "", timeout_s: float = 10.0) -> bool:
        """Says how the run ended and delivers what is left; says whether all was delivered. May be called again."""
        if exit_code:
            return self._end("failed", reason or f"finish({exit_code})", timeout_s)
        return self._end("finished", reason, timeout_s)

    def _end(self, status: str, reason: str, timeout_s: float) -> bool:
        if self.is_over:
            return True
        self.is_over = True
        if os.getpid() != self._pid:  # a forked child: the run is its parent's
            return self._reporter is None or self._reporter.close(timeout_s)
        if self.rank == 0 or (status != "finished" and not self.place.task_id):
            self._tell(status, reason)
        delivered = self.reporter.close(timeout_s)
        if not delivered and self.reporter.observatory is not None:  # else it was said at the start
            whisper(self.place, f"not everything of {self.id} was sent; {how_to_send(self.place)}")
        if status == "finished" and self.place.task_id:
            leave_note(self.place)
        if self.session is not None:
            self.session.close(leave=not self.place.task_id)
        return delivered

    def _tell(self, status: str, reason: str = "") -> None:
        self.reporter.describe(self.about, status, reason)

    def _after_fork(self) -> None:
        if self._reporter is not None:
            _of_parents.append(self._reporter)
        self._reporter = None
        if self.session is not None:
            self.session.tie.forget()
        self.session = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        ended = Ending()
        if error is not None:
            ended.note(error)
        self._end(ended.status, ended.reason, 10.0)


def init(
    project: str = "",
    name: str = "",
    config: Any = None,
    *,
    tags: Iterable[str] = (),
    group: str = "",
    job_type: str = "",
    notes: str = "",
    run_id: str | None = None,
    resume: bool | str | None = None,
    **unknown: object,
) -> Run:
    """Joins the task this process was launched by, or the ranks of torchrun or Slurm, or starts a run of its own.

    A second call gives the same run. The task's config comes first, `config` overrides it, and what a
    fork was given overrides both. With `resume` a run of this
    id that was there before goes on after its last step: True or "allow" begins it where there is none, "must" and
    "never" raise. A task goes on by itself.
    """
    check_arguments("strata.init", unknown, _ARGUMENTS)
    wanted = check_resume(resume, run_id)
    global _current  # one process, one run
    with _starting:
        if _current is not None and not _current.is_over:
            return _current
        place = _named(find_place(), project, name, run_id)
        about = Description(
            project=project,
            name=name or place.run_id,
            config={**place.config, **config_of(config), **changes_of(place)},
            tags=tags_of(tags),
            group=group,
            job_type=job_type,
            notes=notes,
        )
        earlier = None if wanted is None or place.task_id else find_earlier(place, wanted)
        if place.task_id:
            take_note_back(place)
            set_up_rank_logging(place.settings.log)
            print_stacks_on_signal()
        session = join(place)
        first = _current is None
        _current = Run(place, session, about, earlier)
        own_checkpoints()
        belonging.own_loaders(place, session, _current.reporter)
        atexit.register(_finish_at_exit, _current)
        if first:
            os.register_at_fork(after_in_child=_after_fork)
            _ending.watch()
        if place.task_id:
            from strata.worker.excepthook import watch_for_dead_peers

            watch_for_dead_peers(partial(_finish_at_exit, _current))
        else:
            greet(place, _current.reporter.observatory)
        return _current


def own_checkpoints() -> None:
    """From now on a CheckpointManager of this process belongs to its run, which is started with the first of them: in a
    task a process is a rank whether it says strata.init or not."""
    belonging.own_checkpoints(current_run)


def _after_fork() -> None:
    if _current is not None:
        _current._after_fork()


def _size_of(values: Any) -> int:
    return len(values) if isinstance(values, Mapping) else 1


def _named(place: Place, project: str, name: str, run_id: str | None) -> Place:
    chosen = str(run_id or place.run_id)  # people give a seed, or the number of their job
    if not chosen:
        stem = name_of(str(name or project), "run").rstrip("-._")
        suffix = place.group or f"{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        chosen = f"{stem[:60]}-{suffix}"[:128]
    return replace(place, run_id=check_name("run_id", chosen))


def _finish_at_exit(run: Run) -> None:
    """A script that forgot to finish loses nothing, and its run ends as the script does."""
    if run.place.task_id and not run.is_over:  # the agent sees the exit code, and the coordinator decides
        run.is_over = True
        if run._reporter is not None:
            run._reporter.close(5.0)
        if os.getpid() == run._pid and _ending.is_well:
            leave_note(run.place)
        if run.session is not None:
            run.session.close(leave=False)
        return
    run._end(_ending.status, _ending.reason or _NO_FINISH, 5.0)


def active_run() -> Run | None:
    """The run of this process that is under way, if there is one."""
    return _current if _current is not None and not _current.is_over else None


def current_run() -> Run:
    """The run of this process, started now if there is none."""
    return _current if _current is not None else init()


def log(values: Mapping[str, Any], step: int | None = None) -> None:
    current_run().log(values, step)


def barrier(name: str, step: int = 0, *, timeout_s: float | None = None) -> BarrierResult | None:
    return current_run().barrier(name, step, timeout_s=timeout_s)


def should_stop() -> bool:
    return current_run().should_stop()


def section(name: str, timeout: float | None = None) -> "contextlib.AbstractContextManager[None]":
    return current_run().section(name, timeout)


def finish(exit_code: int = 0) -> bool:
    return current_run().finish(exit_code)
