"""One agent of a fleet that is played, with the ranks behind it: it does what its desired state says at once, and tells
it as an agent does. No process is started.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

from benchmarks.scripts.grpc_wire import Connection
from strata.agent.beats import HeldBeats
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.proofs import SECRET_VARIABLE
from strata.types.tasks import incarnation_of

__all__ = ["RANKS", "Host"]

RANKS = 8
RETRY_S = (0.05, 0.15)  # between two tries to reach a coordinator that is away
AGAIN_S = (0.02, 0.3)  # before a rank whose tie has ended says its hello again, at first and at most


class Listening(Protocol):
    """What a host needs of its fleet."""

    address: str
    attach_block: bytes
    over: bool
    beating: bool
    meeting: str

    def heard(self, what: str, number: int) -> None: ...

    def came(self, what: str, who: str) -> None:
        """The same of somebody who is heard of once, however often it says it, until it `went`."""

    def went(self, what: str, who: str) -> None: ...

    def spawn(self, job: Coroutine[Any, Any, None]) -> None: ...


class Wire(Connection):
    """A connection that says when it is lost. That may be before whoever opened it has heard of it: `gone`."""

    gone = False
    on_lost: Callable[[], None] | None = None

    def connection_lost(self, error: Exception | None) -> None:
        self.gone = True
        if self.on_lost is not None:
            self.on_lost()


class Host:
    """One agent: does what its desired state says at once, and tells it as an agent does. When its stream breaks, its
    ranks open their ties anew and say again what was not answered, as those of a relay do."""

    def __init__(self, fleet: Listening, number: int) -> None:
        self._fleet = fleet
        self.name = f"host-{number}"
        self.ranks: dict[int, ag.DesiredProcess] = {}  # by the number of its tie
        self._welcome: set[int] = set()  # ties whose ranks were greeted
        self._again_s = AGAIN_S[0]
        self._waiting: set[int] = set()  # ties whose ranks have arrived
        self._step, self._request = 0, ""  # at which, and with which request
        self._ended: list[ag.ProcessReport] = []
        self._company = b""
        self._beat = b""
        self.wire: Wire | None = None

    # --- its stream

    async def attach(self) -> None:
        """Tries until somebody is there."""
        loop, (host, _, port) = asyncio.get_running_loop(), self._fleet.address.rpartition(":")
        while True:
            try:
                _, wire = await loop.create_connection(lambda: Wire(self._on_message), host, int(port))
                if not wire.gone:
                    break
            except OSError:
                pass
            await asyncio.sleep(random.uniform(*RETRY_S))  # jitter
        self.wire, wire.on_lost = wire, self._on_lost
        wire.open(self._fleet.attach_block)
        hello = ag.AgentHello(
            agent_id=self.name, incarnation="one", hostname=self.name, address="h", slots=RANKS, takes_news=True
        )
        hello.processes.extend(self._report(process, running=True, pid=1) for process in self.ranks.values())
        hello.processes.extend(self._ended)  # it may not have been heard
        self.say(ag.AgentMessage(hello=hello))

    def _on_lost(self) -> None:
        self.wire = None
        self._welcome.clear()
        self._fleet.went("welcome", self.name)
        for tie in self.ranks:
            self._fleet.went("greeted", f"{self.name}/{tie}")
        if not self._fleet.over:
            self._fleet.spawn(self.attach())

    def say(self, message: ag.AgentMessage) -> None:
        self.send(message.SerializeToString())

    def send(self, message: bytes) -> None:
        if self.wire is not None:
            self.wire.send(message)

    def _on_message(self, _: Connection, payload: bytes) -> None:
        message = ag.CoordinatorMessage.FromString(payload)
        kind = message.WhichOneof("message")
        if kind == "ties":
            self._on_frames(message.ties)
        elif kind == "desired":
            self._on_desired(message.desired)
        elif kind == "beat":
            self._fleet.heard(f"beat {message.beat.sequence}", 1)
        elif kind == "welcome":
            self._fleet.came("welcome", self.name)
            self._greet(list(self.ranks))

    # --- its processes

    def _report(self, process: ag.DesiredProcess, **what: Any) -> ag.ProcessReport:
        report = ag.ProcessReport(**what)
        report.task_id, report.attempt = process.task_id, process.attempt
        report.rank, report.life = process.rank, process.life
        return report

    def _on_desired(self, desired: ag.DesiredState) -> None:
        wanted = {process.local_rank + 1: process for process in desired.processes if not process.stop}
        stopped = [tie for tie, process in self.ranks.items() if _named(wanted.get(tie)) != _named(process)]
        self.end(stopped, stopped=True, exit_code=-15)
        started = [tie for tie in wanted if tie not in self.ranks]
        self.ranks.update({tie: wanted[tie] for tie in started})
        for tie in started:
            self.say(ag.AgentMessage(process=self._report(wanted[tie], running=True, pid=1)))
        if started:
            newest = max(process.attempt for process in self.ranks.values())
            self._ended = [report for report in self._ended if report.attempt == newest]
            self._prepare()
            self._greet(started)
        if not wanted:
            self._fleet.came("nothing to do", self.name)

    def end(self, ties: list[int], **how: Any) -> None:
        """A rank's connection ends first, then its process is seen to have."""
        if not ties:
            return
        gone = [self.ranks.pop(tie) for tie in ties]
        self._waiting.difference_update(ties)
        self._welcome.difference_update(ties)
        self.say(ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(tie=tie, ended=True) for tie in ties])))
        ended = [self._report(process, **how) for process in gone]
        self._ended += ended
        for report in ended:
            self.say(ag.AgentMessage(process=report))

    def _prepare(self) -> None:
        self._company = self._named_company(self.ranks)
        status = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=100, step_time_s=0.5)
        beats = HeldBeats()  # as the relay puts them together
        for tie in self.ranks:
            beats.add(tie, rk.RankWords(beat=pb.HeartbeatRequest(status=status), sequence=1))
        self._beat = ag.AgentMessage(ties=ag.TieFrames(frames=beats.take())).SerializeToString()

    def _named_company(self, ties: Iterable[int]) -> bytes:
        ranks = [self.ranks[tie] for tie in ties]
        incarnations = [incarnation_of(p.task_id, p.attempt, p.rank, p.life) for p in ranks]
        company = ag.Company(ties=ties, worker_ids=[p.worker_id for p in ranks], incarnations=incarnations)
        return company.SerializeToString()

    # --- its ranks

    def _greet(self, ties: list[int]) -> None:
        """A hello has what its rank still waits for, as that of `client/tie.py`."""
        frames = []
        for tie in ties:
            if (process := self.ranks.get(tie)) is None:
                continue
            hello = rk.RankHello(
                worker_id=process.worker_id,
                incarnation=incarnation_of(process.task_id, process.attempt, process.rank, process.life),
                proof=process.env[SECRET_VARIABLE],
            )
            words = rk.RankWords(hello=hello)
            if tie in self._waiting:
                words.arrivals.add(
                    worker_id=hello.worker_id,
                    incarnation=hello.incarnation,
                    barrier_id="b",
                    step=self._step,
                    request_id=self._request,
                )
            frames.append(ag.TieFrame(tie=tie, payload=words.SerializeToString()))
        if frames:
            self.say(ag.AgentMessage(ties=ag.TieFrames(frames=frames)))

    def beat(self, sequence: int = 1) -> None:
        """Its ranks beat when they were welcomed, as those of a relay do."""
        self.say(ag.AgentMessage(beat=ag.AgentBeat(sequence=sequence)))
        if self.ranks and self._fleet.beating and self._welcome >= self.ranks.keys():
            self.send(self._beat)

    def arrive(self, step: int) -> bytes:
        """All of its ranks come to a barrier: what is to be sent."""
        self._step, self._waiting = step, set(self.ranks)
        self._request = f"{self._fleet.meeting}.1"  # as all have it who met before
        return self._arrivals()

    def _arrivals(self) -> bytes:
        ties = sorted(self._waiting)
        arrivals = ag.Arrivals(
            alike=pb.BarrierRequest(barrier_id="b", step=self._step, request_id=self._request).SerializeToString(),
            company=self._company if len(ties) == len(self.ranks) else self._named_company(ties),
        )
        return ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(arrivals=arrivals)])).SerializeToString()

    def _on_frames(self, frames: ag.TieFrames) -> None:
        again = []
        for frame in frames.frames:
            if frame.HasField("releases"):
                self._fleet.meeting = frame.releases.alike.meeting
                self._on_answers("released", frame.releases.ties)
            elif frame.HasField("news"):
                self._on_news(frame.news.ties, rk.RankNews.FromString(frame.news.alike))
            elif frame.ended:  # its hello has overtaken its agent's word that it runs, most often
                self._welcome.discard(frame.tie)
                again.append(frame.tie)
                self._fleet.heard(f"end of a tie: {frame.error_code}", 1)
            elif frame.payload:
                self._on_news((frame.tie,), rk.RankNews.FromString(frame.payload))
        if again:
            asyncio.get_running_loop().call_later(self._again_s * random.uniform(0.5, 1.5), self._greet, again)
            self._again_s = min(2 * self._again_s, AGAIN_S[1])

    def _on_news(self, ties: Sequence[int], news: rk.RankNews) -> None:
        if news.HasField("result"):
            self._on_answers("broken" if news.result.error_code else "released", ties)
        elif len(ties) == 1 and not news.heard and not news.lost:  # what several are told is no welcome
            self._welcome.update(ties)
            self._again_s = AGAIN_S[0]
            self._fleet.came("greeted", f"{self.name}/{ties[0]}")

    def _on_answers(self, what: str, ties: Iterable[int]) -> None:
        answered = self._waiting.intersection(ties)
        self._waiting -= answered
        self._fleet.heard(what, len(answered))


def _named(process: ag.DesiredProcess | None) -> tuple[str, int, int]:
    return (process.task_id, process.attempt, process.life) if process is not None else ("", 0, 0)
