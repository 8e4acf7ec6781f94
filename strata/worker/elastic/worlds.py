"""Which world this rank trains in, and what it hears of deaths and of the next one. It meets the others of each world
anew; a loss ends every wait for a peer at once.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from strata.errors import PeerLost, StrataError
from strata.protocol.fields import from_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.worker.collective.gang import Gang
from strata.worker.environment import gang_address, gang_secret
from strata.worker.run import Run

__all__ = ["Framework", "Meeting", "Worlds"]

_log = logging.getLogger(__name__)

_VERDICT_S = 2.0  # within which the coordinator has told of a death that an error came from
_ABSENT_S = 60.0  # that a coordinator may be away while an error waits for its word
_PATIENCE_S = 600.0  # that the next world may take: a host may have to load the program first
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Where the ranks of a world meet. `generation` is the membership's when it was announced; 0: as at the start."""

    number: int
    size: int
    master_addr: str
    master_port: int
    gang_port: int
    generation: int = 0


class Framework(Protocol):
    """A training framework's own group of ranks. All but `abort` are called on the training thread."""

    def host(self, meeting: Meeting, rank: int) -> None:
        """Before the ranks meet: rank 0 opens what the others will look for."""
        ...

    def enter(self, meeting: Meeting, rank: int) -> None:
        """All ranks have met."""
        ...

    def abort(self) -> None:
        """Ends every wait for a peer. From any thread, more than once, at any time."""
        ...

    def leave(self) -> None: ...
    def wrap(self, model: Any, **options: Any) -> Any: ...

    def waited_s(self) -> float:
        """How long this rank has waited for others in the step that it has just done."""
        ...


class Worlds:
    """One per process."""

    def __init__(self, run: Run, framework: Framework | None) -> None:
        self._run = run
        self._framework = framework
        address, gang_port = gang_address(run.world_size)
        self.current = self._newest = Meeting(
            number=run.place.world_number,
            size=run.world_size,
            master_addr=address,
            master_port=int(os.environ.get("MASTER_PORT", "0")),
            gang_port=gang_port,
        )
        self._lost = ""
        self._gang: Gang | None = None
        self._told = threading.Condition()
        if run.session is not None and run.place.task_id:
            run.session.listen(self._hear)

    # --- what the coordinator says, on the tie's thread

    def _hear(self, news: rk.RankNews) -> None:
        with self._told:
            for loss in news.lost:
                self._lost = f"{loss.worker_id} is out: {loss.reason}"
            if news.HasField("world") and news.world.number > self._newest.number:
                self._newest = from_message(Meeting, news.world, generation=news.generation)
                self._lost = ""  # it is the world after that loss
            ends = self.changed
            self._told.notify_all()
        if ends:
            self._abort()

    def _abort(self) -> None:
        gang = self._gang
        if gang is not None:
            gang.abort()
        if self._framework is not None:
            self._framework.abort()

    @property
    def changed(self) -> bool:
        """The current world is over: somebody in it died, or there is a newer one."""
        return bool(self._lost) or self._newest.number > self.current.number

    def check(self) -> None:
        if self.changed:
            raise PeerLost(self._lost or f"world {self.current.number} is over, {self._newest.number} has begun")

    # --- from world to world, on the training thread

    @contextlib.contextmanager
    def taking_part(self) -> Iterator[None]:
        """Inside, the cluster may replace other ranks while this process goes on. An error that leaves it says nothing:
        the process ends, and is replaced itself."""
        self._say(pb.WorkerStatus.TAKES_PART)
        yield
        self._say(pb.WorkerStatus.NO_MORE)

    def _say(self, word: "pb.WorkerStatus.InPlace.ValueType") -> None:
        session = self._run.session
        if session is not None and self._run.place.task_id:
            session.status.in_place = word
            session.tie.beat_soon()

    def enter(self) -> None:
        """Meets the others of the newest world. Raises PeerLost when that is over before all have come."""
        run, framework = self._run, self._framework
        with self._told:
            self.current = meeting = self._newest
        run.reporter.begin_world(meeting.number)  # steps that it does again supersede those of the world before
        if meeting.generation and run.session is not None:
            # Barriers and saves of this process count again: it knows of the loss that fenced them.
            run.session.member = replace(run.session.member, generation=meeting.generation)
        if framework is not None:
            framework.host(meeting, run.rank)
        secret = gang_secret(run.place, meeting.number)
        address = (meeting.master_addr, meeting.gang_port)
        gang = Gang(run.rank, meeting.size, address, secret, given_up=lambda: self.changed, note_wait=run.note_wait)
        self._gang = run.gang = gang
        if framework is not None:
            framework.enter(meeting, run.rank)
        self.check()  # a loss that was heard while the gang was not there yet to be aborted

    def abandon(self) -> None:
        """Gives the current world up: whoever still waits for this rank in it hears so at once."""
        self._abort()
        self.leave()
        gang, self._gang = self._gang, None
        if gang is not None:
            gang.close()

    def leave(self) -> None:
        """The framework's group ends with the function; the gang stays, for the rest of the script."""
        if self._framework is not None:
            self._framework.leave()

    def explains(self, error: Exception) -> bool:
        """Whether an error came of a death in this world. The coordinator knows; what cannot come from a peer is not
        held up for its word."""
        session = self._run.session
        if session is None or not self._run.place.task_id:
            return False
        if not self.changed and isinstance(error, StrataError | RuntimeError | OSError | EOFError):
            until = time.monotonic() + _ABSENT_S
            while time.monotonic() < until and not session.tie.beat(_VERDICT_S) and not self.changed:
                time.sleep(_LOOK_S)
            with self._told:
                self._told.wait_for(lambda: self.changed, _VERDICT_S)
        return self.changed

    def wait_for_next(self) -> bool:
        """Waits for a newer world; False when none will come: the task stops. If all start anew instead, this process
        is ended meanwhile."""
        until = time.monotonic() + _PATIENCE_S
        while self._newest.number <= self.current.number:
            if self._run.stop_asked or time.monotonic() > until:
                return False
            with self._told:
                self._told.wait(_LOOK_S)
        return True
