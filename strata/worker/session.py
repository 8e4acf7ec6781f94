"""A worker's membership: it joins, says what it does on its tie, hears there of a stop, and knows when its place was
given to somebody else. Progress (steps, sections) is told apart from being alive.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil

from strata.client.channel import Channel
from strata.client.tie_thread import TieThread
from strata.client.workers import Member, WorkersClient
from strata.errors import Fenced, StrataError, UnknownWorker
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.access import find_access
from strata.trust.proofs import SECRET_VARIABLE
from strata.types.workers import WorkerSpec
from strata.worker.environment import Place
from strata.worker.exit_notes import LEFT, leave_note
from strata.worker.imports import Imports
from strata.worker.signals import watch_stop_signals

__all__ = ["FENCED_EXIT", "Session"]

_log = logging.getLogger(__name__)

FENCED_EXIT = 75
_PATIENCE_S = 600.0
_AGREE_S = 10.0  # for the coordinator to name a step
_AGREED_S = 30.0  # for all ranks to hear of it
_NEWEST = 0.2  # the share of the newest beat in the mean over beats

State = pb.WorkerStatus
# Sections of a name that the cluster has a state for.
_STATES = {"checkpoint": State.CHECKPOINTING, "recovery": State.RECOVERING}


class Session:
    """One process's membership. Everything a training loop sets here is a plain attribute: setting it costs nothing."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.channel = Channel(
            place.settings.coordinator_addr, access=find_access(place.settings), patience_s=_PATIENCE_S
        )
        self.workers = WorkersClient(self.channel)
        self.member: Member = self.workers.register(_spec(place))
        self.status = State(state=State.INITIALIZING, current_task=place.task_id, dataset_id=place.dataset_id)
        self._sections: list[tuple[str, float, bool]] = []
        self._process = psutil.Process()
        self._net_at_start = psutil.net_io_counters()
        self._rejoined: list[Callable[[], None]] = []
        self._listener: Callable[[rk.RankNews], None] | None = None
        self._world: rk.RankNews | None = None
        self.peer_is_out = False
        self._stop = False
        self._asked_at = 0.0
        self._parting = threading.Condition()
        self._stop_at: int | None = None
        self._stop_agreed = False
        self._gone_on_at = -1  # the last step at which the script was told to go on
        self._closing = threading.Event()
        self._apart_s = 0.0  # seconds in sections, or waiting for other ranks
        self._reached = self._counted = (time.monotonic(), 0, 0.0)  # when, which step, seconds apart until then
        self._imports = Imports(place)
        self.tie = TieThread(
            self,
            place.roads,
            access=find_access(place.settings),
            beat_s=self.member.beat_s,
            patience_s=_PATIENCE_S,
        )

    # --- progress

    def step(self, step: int, *, epoch: int | None = None, progress: float | None = None) -> None:
        """The loop got this far."""
        status = self.status
        if step != self._reached[1]:
            self._reached = (time.monotonic(), step, self._apart_s)
        if not self._sections:
            self._show(State.TRAINING)
        status.current_step = step
        if epoch is not None:
            status.current_epoch = epoch
        if progress is not None:
            status.progress = min(100.0, max(0.0, progress))

    @contextlib.contextmanager
    def section(self, name: str, timeout_s: float = 0.0, *, at_barrier: bool = False) -> Iterator[None]:
        """A named slow part, in which no step is expected: nobody takes it for a hang before its own timeout (0: it has
        none) is over."""
        before, began, apart_s = self.status.state, time.monotonic(), self._apart_s
        self._sections.append((name, timeout_s, at_barrier))
        self._tell_section()
        self._show(_STATES.get(name, before))
        try:
            yield
        finally:
            self._sections.pop()
            self._apart_s = apart_s + time.monotonic() - began
            self._tell_section()
            self._show(before)

    def _tell_section(self) -> None:
        status = self.status
        name, timeout_s, at_barrier = self._sections[-1] if self._sections else ("", 0.0, False)
        status.section, status.section_timeout_s, status.at_barrier = name, timeout_s, at_barrier

    def note_wait(self, seconds: float) -> None:
        """For so long it has waited for other ranks: that is no work of its own."""
        self._apart_s += seconds

    def _show(self, state: "State.State.ValueType") -> None:
        """A new state is told at once: it may be over before the next beat is due."""
        if self.status.state != state:
            self.status.state = state
            self.tie.beat_soon()

    def on_rejoin(self, listener: Callable[[], None]) -> None:
        """Calls `listener`, on another thread, when the coordinator had forgotten this process and knows it
        again."""
        self._rejoined.append(listener)

    def listen(self, listener: Callable[[rk.RankNews], None]) -> None:
        """Calls `listener`, on the tie's thread, with all that this rank hears from now on, and with the newest world
        if it has heard of one."""
        self._listener = listener
        if self._world is not None:
            listener(self._world)

    # --- stopping

    @property
    def stop_asked(self) -> bool:
        """This process was asked to stop; its peers may hear of it a moment earlier or later."""
        if self._stop:
            self._leave()
        return self._stop

    @property
    def should_stop(self) -> bool:
        """True from one agreed step on, so that all ranks save the same one. The coordinator names it; if it does not
        in a few seconds (the host leaves, nobody counts steps), every rank leaves when it can."""
        with self._parting:
            if not self.status.left and self._is_time():
                self._leave()
            if not self.status.left:
                self._gone_on_at = self.status.current_step
            return self.status.left

    def _is_time(self) -> bool:
        """Whoever reaches the step that was named waits until all have heard of it, or until a later one is named."""
        until = time.monotonic() + _AGREED_S
        while self._stop_at is not None and self.status.current_step >= self._stop_at:
            left_s = until - time.monotonic()
            if self._stop_agreed or left_s <= 0:
                return True
            self._parting.wait(left_s)
        if self._stop_at is not None or not self._stop:
            return False
        return self.place.world_size == 1 or time.monotonic() - self._asked_at > _AGREE_S

    def _leave(self) -> None:
        """Notes that the script goes because it was asked to: its exit code will not say so."""
        if self.status.left:
            return
        self.status.left = True
        if self.place.task_id:
            leave_note(self.place, LEFT)
        self._beat_soon()

    def _beat_soon(self) -> None:
        with contextlib.suppress(StrataError):  # it may be closed already
            self.tie.beat_soon()

    def watch_signals(self) -> None:
        """A signal that asks this process to end asks for a stop."""

        def on_signal() -> None:
            self._asked_at = time.monotonic()
            self._stop = True
            self.status.asked_to_stop = True
            self._beat_soon()

        watch_stop_signals(on_signal)

    def close(self, *, leave: bool) -> None:
        """Ends the heartbeat; with `leave`, also the membership."""
        if self._closing.is_set():
            return
        self._closing.set()
        self.tie.close()
        if leave:
            with contextlib.suppress(StrataError):  # the lease ends it anyway
                self.workers.deregister(self.member)
        self.channel.close()

    # --- for the tie

    def hello(self) -> rk.RankHello:
        proof = os.environ.get(SECRET_VARIABLE, "")
        return rk.RankHello(worker_id=self.member.worker_id, incarnation=self.member.incarnation, proof=proof)

    def beat(self) -> pb.HeartbeatRequest:
        """What this process does. What it uses is measured by its agent, GPUs and children too, where there is one."""
        self._measure()
        self._imports.look(self.status.current_step)
        return pb.HeartbeatRequest(
            worker_id=self.member.worker_id,
            timestamp_ms=time.time_ns() // 1_000_000,
            status=self.status,
            incarnation=self.member.incarnation,
            resources=None if self.place.agent_id else self._resources(),
        )

    def hear(self, news: rk.RankNews) -> None:
        if news.HasField("stop_at"):
            self._on_stop_at(news.stop_at, agreed=news.stop_agreed)
        for loss in news.lost:
            _log.warning("%s is out: %s", loss.worker_id, loss.reason)
            self.peer_is_out = True
        if news.HasField("world"):
            self._world, self.peer_is_out = news, False  # who trains now are all there
        if self._listener is not None:
            self._listener(news)

    def _on_stop_at(self, step: int, *, agreed: bool) -> None:
        with self._parting:
            if step != self._stop_at:
                self._stop_at = self.status.stop_heard = step
                self.status.stop_passed = self._gone_on_at >= step
                self._beat_soon()
            self._stop_agreed = agreed
            self._parting.notify_all()
        self._stop = True

    def refused(self, error: StrataError) -> None:
        if isinstance(error, Fenced):
            self._on_fenced(error)
        elif isinstance(error, UnknownWorker):
            self._rejoin()
        else:
            _log.warning("the coordinator refuses this worker's connection: %s", error)

    def _measure(self) -> None:
        """Seconds per step since the last beat, and how many of them were this rank's own, of the last few beats."""
        self._counted, (then, before, had_s) = self._reached, self._counted
        now, step, apart_s = self._counted
        if step > before > 0:
            status, took_s = self.status, (now - then) / (step - before)
            own_s = max(0.0, took_s - (apart_s - had_s) / (step - before))
            status.step_time_s = took_s
            status.own_time_s += (own_s - status.own_time_s) * (_NEWEST if status.own_time_s else 1.0)

    def _resources(self) -> pb.ResourceUsage:
        with self._process.oneshot():
            usage = pb.ResourceUsage(
                cpu_percent=self._process.cpu_percent(), memory_used_bytes=self._process.memory_info().rss
            )
            with contextlib.suppress(psutil.Error, AttributeError):
                io = self._process.io_counters()
                usage.disk_read_bytes, usage.disk_write_bytes = io.read_bytes, io.write_bytes
        net = psutil.net_io_counters()
        usage.network_rx_bytes = net.bytes_recv - self._net_at_start.bytes_recv
        usage.network_tx_bytes = net.bytes_sent - self._net_at_start.bytes_sent
        return usage

    def _on_fenced(self, error: Fenced) -> None:
        """Another process has this rank, or the task has moved on: whatever this one does is void."""
        if self._closing.is_set():
            return
        if not self.place.task_id:
            _log.error("%s", error)
            self._closing.set()
            return
        sys.stderr.write(f"strata: {error}; this process ends (exit code {FENCED_EXIT})\n")
        sys.stderr.flush()
        os._exit(FENCED_EXIT)

    def _rejoin(self) -> None:
        with contextlib.suppress(StrataError):
            self.member = self.workers.register(_spec(self.place))
            for listener in self._rejoined:
                listener()


def _spec(place: Place) -> WorkerSpec:
    return WorkerSpec(
        worker_id=place.worker_id,
        task_id=place.task_id,
        incarnation=place.incarnation,
        rank=place.rank if place.task_id else None,
        hostname=os.uname().nodename,
        agent_id=place.agent_id,
        gpu_count=place.num_gpus,
        metadata={"pid": str(os.getpid()), "group": place.group},
    )
