"""Batches on their way to the observatory: memory first, a bounded folder while it cannot be reached, drops counted.

Nothing here ever blocks or raises into its caller. A batch id makes every retry harmless.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from strata.client.batches import halves, num_lines, num_logged, what_is_in
from strata.client.channel import Channel
from strata.client.spill import Spill
from strata.errors import (
    Busy,
    Conflict,
    Fenced,
    Internal,
    InvalidArgument,
    NotFound,
    ObservatoryUnavailable,
    PermissionDenied,
    Refused,
    StrataError,
    Unauthenticated,
)
from strata.protocol.generated import telemetry_pb2 as tm
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from strata.trust.access import OPEN, Access

__all__ = ["Outbox", "OutboxConfig", "send_batches", "send_folder"]

_log = logging.getLogger(__name__)

_MAX_PAUSE_S = 2.0
_LOOK_S = 1.0
_MAX_INTERNAL = 3  # failures of the server's own over one batch, before the batch is taken for the cause
_MAX_TOLD = 100
_FINAL = (InvalidArgument, Conflict, NotFound, Refused, Internal)  # to say it again would not help


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxConfig:
    """`memory_batches` wait in memory before they go to the folder; that holds `disk_bytes` at most."""

    folder: Path
    access: Access = OPEN
    memory_batches: int = 32
    disk_bytes: int = 256 * 1024 * 1024
    send_timeout_s: float = 10.0


class Outbox:
    """Sends batches in order on a thread of its own. `address` is asked again after every failure: ports may move;
    None means that there is no observatory, and everything stays in the folder."""

    def __init__(self, address: Callable[[], str | None], config: OutboxConfig) -> None:
        self._address = address
        self._config = config
        self._known = address()
        self._waiting: deque[tm.Batch] = deque()
        self._changed = threading.Condition()
        self._spill = Spill(config.folder, config.disk_bytes)
        self._dropped_points = 0
        self._dropped_logs = 0
        self.dropped = 0
        """Points, media and lines lost so far: for want of room, or refused by the observatory."""
        self._num_put = 0
        self._sending: tm.Batch | Path | None = None
        self._copied: Path | None = None  # the file of the batch from memory that is being sent, once it is secured
        self._closing = False
        self._sender: _Sender | None = None  # held here: a forked child must not close what its parent uses
        self._thread = threading.Thread(target=self._run, name="strata-telemetry", daemon=True)
        self._thread.start()

    @property
    def at_rest(self) -> bool:
        """There is an observatory, and it has everything."""
        with self._changed:
            return bool(self._known) and self._idle

    @property
    def settled(self) -> int:
        """How many of the batches that were put are safe from a kill -9 of this process: sent, or in the folder (or
        dropped and counted). They settle in order."""
        with self._changed:
            return self._num_put - len(self._waiting) - isinstance(self._sending, tm.Batch)

    def put(self, batch: tm.Batch) -> int:
        """Takes a batch over and returns its number. When neither memory nor folder has room it is dropped and
        counted."""
        with self._changed:
            self._num_put += 1
            batch.dropped_points += self._dropped_points
            batch.dropped_logs += self._dropped_logs
            self._dropped_points = self._dropped_logs = 0
            self._waiting.append(batch)
            # With nobody to send to, memory would only be lost by a kill -9.
            room = self._config.memory_batches if self._known or self._where() else 0
            while len(self._waiting) > room:
                self._store(self._waiting.popleft())
            self._changed.notify_all()
            return self._num_put

    def secure(self) -> bool:
        """Makes everything that was put safe from a kill -9, without waiting for the observatory: what is not delivered
        is in the folder afterwards. False when the folder has no room."""
        with self._changed:
            if isinstance(self._sending, tm.Batch) and self._copied is None:
                self._copied = self._spill.put(self._sending)
                if self._copied is None:
                    return False
            while self._waiting:
                if self._spill.put(self._waiting[0]) is None:
                    return False
                self._waiting.popleft()
            self._changed.notify_all()
            return True

    def flush(self, timeout_s: float) -> bool:
        """Whether everything was delivered in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._idle, timeout_s)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Tries to deliver; what is left then waits in the folder. Says whether all was delivered."""
        delivered = self.flush(timeout_s) if self._where() else False
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(self._config.send_timeout_s + 1.0)
        with self._changed:
            while self._waiting:
                self._store(self._waiting.popleft())
        return delivered

    def _where(self) -> str | None:
        """An observatory that was known once is expected back, though nothing names it while it is down."""
        self._known = self._address() or self._known
        return self._known

    @property
    def _idle(self) -> bool:
        return not self._waiting and self._sending is None and self._spill.empty

    def _store(self, batch: tm.Batch) -> None:
        if self._spill.put(batch) is None:
            self._drop(batch)

    def _drop(self, batch: tm.Batch) -> None:
        self._dropped_points += num_logged(batch) + batch.dropped_points
        self._dropped_logs += num_lines(batch) + batch.dropped_logs
        self.dropped += num_logged(batch) + num_lines(batch)

    # --- the sending thread

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                self._await_work(pause)
                if self._closing:
                    break
                self._sending = self._spill.oldest() or (self._waiting.popleft() if self._waiting else None)
                if self._sending is None:
                    continue
            self._sender = _Sender.renewed(self._sender, self._where(), self._config, broken=pause > 0)
            refused = self._send(self._sender, self._sending)
            with self._changed:
                self._done_with(self._sending, refused)
                pause = 0.0 if refused is not None else min(_MAX_PAUSE_S, pause * 2 or 0.1)
                self._sending = None
                self._changed.notify_all()
        if self._sender is not None:
            self._sender.close()

    def _await_work(self, pause: float) -> None:
        if pause:
            self._changed.wait_for(lambda: self._closing, pause)
        elif not self._changed.wait_for(lambda: self._closing or self._waiting or not self._spill.empty, _LOOK_S):
            self._spill.look()

    def _send(self, sender: "_Sender | None", what: tm.Batch | Path) -> list[tm.Batch] | None:
        """None when it must be tried again, else it is done with: what the observatory refused of it for good."""
        if sender is None:
            return None
        message = self._spill.read(what) if isinstance(what, Path) else what
        return [] if message is None else sender.send(message)

    def _done_with(self, what: tm.Batch | Path, refused: list[tm.Batch] | None) -> None:
        if refused is None and isinstance(what, tm.Batch) and self._copied is None:
            self._waiting.appendleft(what)
        for batch in refused or ():
            self._drop(batch)
        file = what if isinstance(what, Path) else self._copied
        if file is not None and refused is not None:
            self._spill.remove(file)
        self._copied = None


class _Sender:
    """A connection to one observatory."""

    def __init__(self, address: str, config: OutboxConfig, told: set[str] | None = None) -> None:
        self.address = address
        self._config = config
        self._told = set() if told is None else told
        self._failed = ("", 0)  # the batch over which the server failed, and how often in a row
        self._channel = Channel(address, access=config.access, patience_s=0.0)
        self._stub = self._channel.stub(TelemetryStub)

    @classmethod
    def renewed(
        cls, known: "_Sender | None", address: str | None, config: OutboxConfig, *, broken: bool
    ) -> "_Sender | None":
        if known is not None and known.address == address and not broken:
            return known
        if known is not None:
            known.close()
        if not address:
            return None
        fresh = cls(address, config, known._told if known is not None else None)
        fresh._failed = known._failed if known is not None else fresh._failed
        return fresh

    def send(self, batch: tm.Batch) -> list[tm.Batch] | None:
        """What was refused for good of it; None when it must be sent again. One thing that is refused does not take
        the others with it: the batch is halved until it is alone."""
        error = self._try(batch)
        if isinstance(error, Internal):  # a bug of the server over this batch, or a passing trouble of its own
            same, count = self._failed
            self._failed = (batch.batch_id, count + 1 if same == batch.batch_id else 1)
            if self._failed[1] < _MAX_INTERNAL:
                return None
        return self._judged(batch, error)

    def _judged(self, batch: tm.Batch, error: StrataError | None) -> list[tm.Batch] | None:
        if error is None:
            return []
        if not isinstance(error, _FINAL) or isinstance(error, Busy | Fenced):
            if isinstance(error, Unauthenticated | PermissionDenied):
                self._tell(f"the observatory at {self.address} takes nothing from here: {error}", error.code)
            return None
        parts = halves(batch)
        if parts is None:
            self._tell(f"{what_is_in(batch)} was refused and is lost: {error}", str(error))
            return [batch]
        refused: list[tm.Batch] = []
        for part in parts:
            tries = (self._try(part) for _ in range(_MAX_INTERNAL))
            answer = self._judged(part, next((last for last in tries if not isinstance(last, Internal)), error))
            if answer is None:
                return None  # the whole again later: halves have ids of their own, which count once
            refused += answer
        return refused

    def _try(self, batch: tm.Batch) -> StrataError | None:
        try:
            ack: tm.BatchAck = self._channel.call(self._stub.ReportOnce, batch, timeout_s=self._config.send_timeout_s)
        except StrataError as error:
            return error
        if ack.refused_points or ack.refused_logs:
            what = f"{ack.refused_points} points and {ack.refused_logs} log lines"
            self._tell(f"{what} were refused: a newer attempt of this task had begun", "newer attempt")
        return Refused(ack.error_message) if ack.error_code else None

    def _tell(self, line: str, reason: str) -> None:
        """Once per reason, and not without end."""
        if reason not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(reason)
            _log.warning("%s", line)

    def close(self) -> None:
        self._channel.close()


def send_folder(folder: Path, address: str, access: Access = OPEN, *, written_before: float = math.inf) -> int:
    """Sends what a run left behind (of files that were written before the Unix time `written_before`) and removes it as
    it is accepted. What is refused is said and left out. Returns how many batches went out; raises Unavailable when
    nobody answers."""
    spill = Spill(folder, 0)
    sender = _Sender(address, OutboxConfig(folder=folder, access=access))
    count = 0
    try:
        while (path := spill.oldest()) is not None and _written_at(path) <= written_before:
            batch = spill.read(path)
            if batch is not None:
                if sender.send(batch) is None:
                    raise ObservatoryUnavailable(f"the observatory at {address} does not take it now")
                count += 1
            spill.remove(path)
    finally:
        sender.close()
    return count


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # somebody else has sent it


def send_batches(batches: Iterable[tm.Batch], address: str, access: Access = OPEN) -> int:
    """Sends batches one after the other, each acknowledged before the next. Returns how many points were accepted."""
    accepted = 0
    with Channel(address, access=access, patience_s=5.0) as channel:
        stub = channel.stub(TelemetryStub)
        for batch in batches:
            ack: tm.BatchAck = channel.call(stub.ReportOnce, batch, timeout_s=60.0)
            accepted += ack.accepted_points
    return accepted
