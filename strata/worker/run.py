"""`strata.init` and what it gives: a run that takes metrics, meets at barriers and knows when to stop. The same script
works in a task, under torchrun or Slurm, and alone with no server at all.
"""

import atexit
import contextlib
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Self, Unpack

from strata.checkpoint.manager import CheckpointManager
from strata.checkpoint.options import CheckpointOptions
from strata.client.checkpoints import CheckpointsClient
from strata.client.queues import QueuesClient
from strata.data.plan import set_plan_source
from strata.data.queue import set_queue_source
from strata.data.watch import set_read_watcher
from strata.errors import StrataError
from strata.logs import set_up_rank_logging
from strata.types.barriers import BarrierPolicy, BarrierResult
from strata.types.names import check_name
from strata.worker.commit import CoordinatorCommit
from strata.worker.environment import Place, checkpoint_path, find_place
from strata.worker.excepthook import watch_for_dead_peers
from strata.worker.gang import Gang
from strata.worker.plan import WorkerPlan
from strata.worker.reporter import Reporter
from strata.worker.session import Session
from strata.worker.watcher import Watcher

__all__ = ["Run", "barrier", "current_run", "finish", "init", "log", "section", "should_stop"]

_current: "Run | None" = None
_starting = threading.Lock()


class Run:
    """One run as one process sees it. `log` never blocks and never raises; everything else says what is wrong."""

    def __init__(
        self, place: Place, session: Session | None, *, project: str, name: str, config: dict[str, Any]
    ) -> None:
        self.place = place
        self.id = place.run_id
        self.project = project
        self.name = name
        self.config = config
        self._session = session
        self._step = 0
        self._finished = False
        self.reporter = Reporter(place, place.run_id)
        self.reporter.describe(project=project, name=name, config=config, status="running")

    @property
    def rank(self) -> int:
        return self.place.rank

    @property
    def world_size(self) -> int:
        return self.place.world_size

    @property
    def session(self) -> Session | None:
        return self._session

    @property
    def dropped(self) -> int:
        """Points that found no room, so far."""
        return self.reporter.dropped

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Notes metrics of a step (default: one more than the last). About a microsecond; the rest happens behind."""
        try:
            if step is None:
                step = self._step + 1
            self._step = step
            session = self._session
            if session is not None:
                session.status.current_step = step
            self.reporter.log(values, step)
        except Exception:  # a metric must never end a training; it is counted as dropped
            self.reporter.miss()

    def progress(self, step: int, *, epoch: int | None = None, percent: float | None = None) -> None:
        """How far the task is: shown on the dashboard, and what tells a hang from work."""
        self._step = step
        if self._session is not None:
            self._session.step(step, epoch=epoch, progress=percent)

    def barrier(
        self, name: str, step: int = 0, *, timeout_s: float | None = None, policy: BarrierPolicy = BarrierPolicy.FAIL
    ) -> BarrierResult | None:
        """Waits for all ranks. Raises BarrierBroken at once when one dies. Alone there is nobody to wait for."""
        session = self._session
        if session is None:
            return None
        with self.section(f"barrier {name}"[:100]):
            expected = 0 if self.place.task_id else self.world_size
            barrier_id = name if self.place.task_id else f"{self.place.group[:60]}.{name}"
            return session.workers.barrier(
                session.member, barrier_id, step, expected=expected, timeout_s=timeout_s, policy=policy
            )

    def should_stop(self) -> bool:
        """True once the task was asked to stop, for all ranks from the same step on: save, then leave."""
        return self._session is not None and self._session.should_stop

    @property
    def stop_asked(self) -> bool:
        """This rank was asked to stop; for loops that tell the other ranks themselves."""
        return self._session is not None and self._session.stop_asked

    @contextlib.contextmanager
    def section(self, name: str) -> Iterator[None]:
        """`with run.section("eval"):` no step is expected in here, so nobody takes it for a hang."""
        if self._session is None:
            yield
            return
        with self._session.section(name):
            yield

    def checkpoints(self, path: str | None = None, **options: Unpack[CheckpointOptions]) -> CheckpointManager:
        """A CheckpointManager of this rank: all ranks save one checkpoint, which exists when all of them are in it."""
        place, session = self.place, self._session
        where = path or checkpoint_path(place)
        given: CheckpointOptions = {
            "rank": place.rank,
            "world_size": place.world_size,
            "worker_id": place.worker_id or None,
            "task_id": place.task_id or None,
            **options,
        }
        if session is None or not place.task_id:
            return CheckpointManager(where, **given)
        client = CheckpointsClient(session.channel, session.member)
        commit = CoordinatorCommit(client, where, given.get("deadline_s", 600.0))
        return CheckpointManager(where, coordinator=commit, **given)

    @cached_property
    def gang(self) -> Gang:
        """Sums over all ranks, for scripts without a framework of their own. Collective: all ranks ask for it."""
        return Gang(self.place)

    def finish(self, exit_code: int = 0, *, timeout_s: float = 10.0) -> bool:
        """Says how the run ended and delivers what is left; says whether all was delivered. May be called again."""
        if self._finished:
            return True
        self._finished = True
        status = "finished" if exit_code == 0 else "failed"
        if self.rank == 0:
            self.reporter.describe(project=self.project, name=self.name, config=self.config, status=status)
        delivered = self.reporter.close(timeout_s)
        if exit_code == 0 and self.place.task_id:
            _leave_note(self.place)
        if self._session is not None:
            self._session.close(leave=not self.place.task_id)
        return delivered

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.finish(0 if kind is None else 1)


def init(
    project: str = "", name: str = "", config: Mapping[str, Any] | None = None, *, run_id: str | None = None
) -> Run:
    """Joins the task this process was launched by, or the ranks of torchrun or Slurm, or starts a run of its own.

    A second call gives the same run. The task's config comes first, `config` overrides it.
    """
    global _current  # one process, one run
    with _starting:
        if _current is not None and not _current._finished:
            return _current
        place = _named(find_place(), project, name, run_id)
        if place.task_id:
            set_up_rank_logging(place.settings.log)
        session = _join(place)
        merged = {**place.config, **(config or {})}
        _current = Run(place, session, project=project, name=name or place.run_id, config=merged)
        set_plan_source(WorkerPlan(place))
        gang = bool(place.task_id)
        set_queue_source(QueuesClient(session.channel, session.member, gang=gang) if session else None)
        set_read_watcher(Watcher(session, _current.reporter) if session else None)
        atexit.register(_finish_at_exit, _current)
        if place.task_id:
            watch_for_dead_peers(partial(_finish_at_exit, _current))
        return _current


def _named(place: Place, project: str, name: str, run_id: str | None) -> Place:
    chosen = run_id or place.run_id
    if not chosen:
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", name or project or "run").strip("-._") or "run"
        suffix = place.group or f"{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        chosen = f"{stem[:60]}-{suffix}"[:128]
    values = {field: getattr(place, field) for field in Place.__slots__}
    return Place(**{**values, "run_id": check_name("run_id", chosen)})


def _join(place: Place) -> Session | None:
    """A task's rank must join; ranks of another launcher do so when a coordinator answers; a lone script need not."""
    if not place.task_id and not (place.group and _answers(place.settings.coordinator_addr)):
        return None
    try:
        session = Session(place)
    except StrataError:
        if place.task_id:
            raise
        return None
    session.watch_signals()
    return session


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=0.5):
            return True
    except OSError:
        return False


def _leave_note(place: Place) -> None:
    """An agent that did not start this process cannot learn its exit code: the note says that the work is done."""
    folder = place.data_dir / "agent" / "exits"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / place.incarnation).write_text(str(os.getpid()))


def _finish_at_exit(run: Run) -> None:
    """A script that forgot to finish loses nothing; whether it ended well is for its exit code to say."""
    if not run._finished:
        run._finished = True
        run.reporter.close(5.0)
        if run.session is not None:
            run.session.close(leave=not run.place.task_id)


def current_run() -> Run:
    """The run of this process, started now if there is none."""
    return _current if _current is not None else init()


def log(values: Mapping[str, Any], step: int | None = None) -> None:
    current_run().log(values, step)


def barrier(name: str, step: int = 0, *, timeout_s: float | None = None) -> BarrierResult | None:
    return current_run().barrier(name, step, timeout_s=timeout_s)


def should_stop() -> bool:
    return current_run().should_stop()


def section(name: str) -> "contextlib.AbstractContextManager[None]":
    return current_run().section(name)


def finish(exit_code: int = 0) -> bool:
    return current_run().finish(exit_code)
