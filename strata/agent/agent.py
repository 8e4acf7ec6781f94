"""One host's agent: keeps a stream to the coordinator, does what it says, carries its ranks' ties, and tells what
happens here. It goes on while the coordinator is away, and its ranks go on while it is away itself.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from strata import __version__
from strata.agent.capture import Capture
from strata.agent.host import HostSampler
from strata.agent.notices import Notice, Notices
from strata.agent.oom import OomWatch
from strata.agent.rank_files import RankFiles, RankRecord
from strata.agent.ranks import Ranks, report
from strata.agent.relay import Relay
from strata.agent.stacks import is_stopped
from strata.client.attach import Attachment
from strata.client.leaders import Leaders
from strata.errors import InvalidArgument, PermissionDenied, StrataError, Unauthenticated
from strata.launchers.local import pid_of
from strata.protocol.fields import to_message
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.trust.access import Access
from strata.types.workers import AgentFacts

__all__ = ["Agent", "AgentConfig"]

_log = logging.getLogger(__name__)

_FOLLOW_S = 0.1
_SAMPLE_S = 2.0
_MAX_PAUSE_S = 0.3
_LEAVE_GRACE_S = 60.0
_GOODBYE_S = 2.0
_ANSWER_S = 2.0  # within which a coordinator that is there has heard a notice and asked the ranks to leave


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig(AgentFacts):
    """Who this agent is, and where its coordinator listens. One that was started for no task stays."""

    coordinator: str
    access: Access
    leave_after_s: float | None = None  # without ranks or coordinator; None: it stays


class Agent:
    """Runs until `leave` is called. `on_attached` is told the first time that the coordinator welcomes it."""

    def __init__(
        self,
        config: AgentConfig,
        ranks: Ranks,
        capture: Capture,
        sampler: HostSampler,
        files: RankFiles,
        relay: Relay,
        notices: Notices,
    ) -> None:
        self._config = config
        self._ranks = ranks
        self._capture = capture
        self._sampler = sampler
        self._files = files
        self._relay = relay
        self._notices = notices
        self._leaders = Leaders(config.coordinator)
        self._stream: Attachment | None = None
        self._leaving = asyncio.Event()
        self._keep_ranks = False
        self._said_goodbye = False
        self.sent_away = False  # it left before its task was over, because its host goes away
        self._draining = asyncio.Event()  # the coordinator knows that this host goes away
        self._leave_by: float | None = None  # Unix seconds, as the coordinator says
        self._due: tuple[float, float] | None = None  # the earliest deadline, and when it was heard of
        self._welcome = False
        self._needed_at = time.monotonic()
        self._beat_s = 1.0
        self._host = sampler.sample()
        self._oom = OomWatch()
        ranks.listen(self.changed)
        notices.listen(self._on_notice)

    def leave(self, *, keep_ranks: bool = False) -> None:
        """Ends `run`: with all ranks stopped, or letting them run on for the next agent."""
        self._keep_ranks = keep_ranks
        self._leaving.set()

    def changed(self, record: RankRecord) -> None:
        """A rank started or ended: said at once. What cannot be said now is said in the next hello."""
        if record.ended:
            cause = self._capture.finish(record)
            if cause.text and not record.stopped:
                record.exception, record.message = cause
            if not (record.stopped or record.hung) and self._oom.struck(record.exit_code):
                record.out_of_memory = True
                record.message = "the kernel ran out of memory and killed it"
            self._files.note(record, sync=False)
            self._capture.say("info" if record.exit_code == 0 or record.stopped else "error", _obituary(record), record)
        elif record.look:
            where = record.where or "a place that nobody can tell"
            self._capture.say("warn", f"rank {record.rank} was asked where it stands: in {where}", record)
        self._say(ag.AgentMessage(process=report(record)))

    def _say(self, message: ag.AgentMessage) -> None:
        if self._stream is not None:  # else the next hello tells everything
            self._stream.send(message)

    async def run(self, on_attached: Callable[[], None]) -> None:
        jobs = [asyncio.create_task(job) for job in self._jobs(on_attached)]
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            done, _ = await asyncio.wait([*jobs, leaving], return_when=asyncio.FIRST_COMPLETED)
            for job in done - {leaving}:
                job.result()
            await self._depart()
        finally:
            for job in (*jobs, leaving):
                job.cancel()
            await asyncio.gather(*jobs, leaving, return_exceptions=True)

    def _jobs(self, on_attached: Callable[[], None]) -> "tuple[Coroutine[Any, Any, None], ...]":
        jobs = (self._connect(on_attached), self._beat(), self._follow())
        return *jobs, self._ranks.spares.run(), self._notices.watch()

    async def _depart(self) -> None:
        if self._keep_ranks:
            self._ranks.detach()
            return
        # First the notice: from now on nothing is placed here, and the ranks leave at a step that they agree upon. Who
        # does not, or hears nothing because the coordinator is away, has its grace.
        if self._ranks.running():
            await self._give_notice()
        await self._ranks.stop_all(_LEAVE_GRACE_S)
        self._said_goodbye = True
        self._say(ag.AgentMessage(goodbye=ag.AgentGoodbye(reason="stopped")))
        if self._stream is not None:
            await self._stream.leave(_GOODBYE_S)

    # --- going away

    async def _give_notice(self) -> None:
        grace_s = max(min(record.grace_s, _LEAVE_GRACE_S) for record in self._ranks.running())
        self._notices.give("stop", Notice(reason="its agent was stopped", deadline=time.time() + grace_s))
        if self._welcome:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ANSWER_S):
                    await self._draining.wait()

    def _on_notice(self, notice: Notice | None) -> None:
        self._say(ag.AgentMessage(notice=_notice_message(notice)))

    def _on_desired(self, desired: ag.DesiredState) -> None:
        if desired.draining:
            self._draining.set()
        else:
            self._draining.clear()
        self._leave_by = desired.leave_by if desired.HasField("leave_by") else None
        self._ranks.reconcile(desired, starting=not self._leaving.is_set())
        if desired.over and not self._leaving.is_set():
            _log.info("task %s is over: this agent leaves", self._config.task_id)
            self.leave()

    def _keep_deadline(self) -> None:
        """Ranks that did not leave by themselves end before this host does, whether the coordinator is there or not."""
        notice, now = self._notices.current, time.time()
        known = (self._leave_by, notice.deadline if notice is not None else None)
        deadline = min((at for at in known if at is not None), default=None)
        if deadline is None:
            self._due = None
            return
        if self._due is None or self._due[0] != deadline:
            self._due = (deadline, now)
        self._ranks.press(deadline - now, deadline - self._due[1])

    # --- the stream

    async def _connect(self, on_attached: Callable[[], None]) -> None:
        pause, told = 0.1, False

        def on_message(message: ag.CoordinatorMessage) -> None:
            nonlocal pause, told
            match message.WhichOneof("message"):
                case "welcome":
                    pause, told = 0.1, False
                    config, where = self._config, self._leaders.current
                    _log.info("agent %s serves the coordinator at %s, %d slots", config.agent_id, where, config.slots)
                    self._welcome = True
                    self._beat_s = message.welcome.heartbeat_interval_ms / 1e3
                    welcome = message.welcome
                    takes = {"takes_beats": welcome.takes_beats, "takes_crowds": welcome.takes_crowds}
                    self._relay.attach(self._say, **takes)
                    on_attached()
                case "desired":
                    self._on_desired(message.desired)
                case "ties":
                    self._relay.on_frames(message.ties)

        while not self._said_goodbye:
            error = await self._attach(on_message)
            if isinstance(error, Unauthenticated | PermissionDenied | InvalidArgument):
                raise error
            if not told and not self._said_goodbye:
                _log.warning("no stream to the coordinator: %s; trying again", error)
                told = True
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311  # jitter
            pause = min(pause * 2, _MAX_PAUSE_S)

    async def _attach(self, on_message: Callable[[ag.CoordinatorMessage], None]) -> StrataError:
        """One stream to its end; returns what ended it."""
        address = self._leaders.current
        try:
            self._stream = await Attachment.open(address, self._config.access, self._hello(), on_message)
            return await self._stream.ended(several=self._leaders.several)
        except StrataError as error:
            return error
        finally:
            self._leaders.leave(address)
            self._stream = None
            self._welcome = False
            self._relay.detach()

    def _hello(self) -> ag.AgentHello:
        return to_message(
            ag.AgentHello,
            self._config,
            gpu_count=self._sampler.num_gpus,
            processes=[report(record) for record in self._ranks.records()],
            version=__version__,
            launchers=[self._config.launcher],
            notice=_notice_message(self._notices.current),
            takes_news=True,
        )

    # --- the pulse

    async def _beat(self) -> None:
        sequence, sampled_at = 0, 0.0
        while not self._said_goodbye:  # whoever said goodbye is no longer expected to beat
            sequence += 1
            if time.monotonic() - sampled_at >= _SAMPLE_S:
                sampled_at = time.monotonic()
                self._host = self._sampler.sample()
                self._oom.look()
                self._capture.metrics(self._host)
            stopped = [one.worker_id for one in self._ranks.running() if one.handle and is_stopped(pid_of(one.handle))]
            beat = ag.AgentBeat(
                sequence=sequence,
                workers=self._worker_beats(),
                host=self._host.usage,
                stopped=stopped,
                spares=self._ranks.spares.standing(),
            )
            self._say(ag.AgentMessage(beat=beat))
            self._keep_deadline()
            self._leave_when_idle()
            self._leave_when_sent_away()
            await asyncio.sleep(self._beat_s)

    def _leave_when_idle(self) -> None:
        """Whoever started this agent for a task may have been killed before it could end it."""
        now, limit = time.monotonic(), self._config.leave_after_s
        if self._welcome and self._ranks.running():
            self._needed_at = now
        elif limit is not None and now - self._needed_at > limit:
            _log.warning("no ranks or no coordinator for %g s: this agent leaves", limit)
            self.leave()

    def _leave_when_sent_away(self) -> None:
        """An agent of one task has nothing more to do on a host that goes away, once its ranks have left: whoever
        started it may start it again, here or elsewhere."""
        heard = self._draining.is_set() or not self._welcome
        idle = self._notices.current is not None and heard and not self._ranks.running()
        if self._config.task_id and idle and not self._leaving.is_set():
            _log.info("its ranks have left: this agent leaves before its host goes away")
            self.sent_away = True
            self.leave()

    def _worker_beats(self) -> list[pb.HeartbeatRequest]:
        now_ms = time.time_ns() // 1_000_000
        return [
            pb.HeartbeatRequest(
                worker_id=record.worker_id,
                timestamp_ms=now_ms,
                incarnation=record.incarnation,
                resources=self._sampler.process(pid_of(record.handle), record.gpus),
            )
            for record in self._ranks.running()
            if record.handle
        ]

    async def _follow(self) -> None:
        """Output is followed all the time; how far is noted now and then, so that a restart repeats little."""
        rounds = 0
        while True:
            self._capture.follow()
            rounds += 1
            if rounds % 10 == 0:
                changed = self._capture.note_offsets()
                changed += [record for record in self._ranks.running() if self._capture.shed(record)]
                for record in changed:
                    self._files.note(record, sync=False)
            await asyncio.sleep(_FOLLOW_S)


def _notice_message(notice: Notice | None) -> ag.AgentNotice:
    return ag.AgentNotice() if notice is None else ag.AgentNotice(reason=notice.reason, deadline=notice.deadline)


def _obituary(record: RankRecord) -> str:
    if record.unstarted or record.hindered:
        return f"rank {record.rank} could not be started: {record.message}"
    if record.hung:
        return f"rank {record.rank} hung and was ended: {record.message}"
    if record.exit_code is None:
        return f"rank {record.rank} is gone: {record.message}"
    if record.exit_code < 0:
        why = f": {record.message}" if record.out_of_memory else ""
        when = " after it had finished its work" if record.finished else ""
        return f"rank {record.rank} was killed by signal {-record.exit_code}{when}{why}"
    return f"rank {record.rank} exited with code {record.exit_code}"
