"""Batches on their way to the observatory: memory first, a bounded folder while it cannot be reached, drops counted.

Nothing here ever blocks or raises into its caller. A batch id makes every retry harmless.
"""

import json
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from strata.client.channel import Channel
from strata.config import Settings
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import telemetry_pb2 as tm
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub

__all__ = ["Outbox", "OutboxConfig", "new_batch", "send_batches", "send_folder", "telemetry_address"]

_log = logging.getLogger(__name__)

_SUFFIX = ".batch"
_MAX_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxConfig:
    """`memory_batches` wait in memory before they go to the folder; that holds `disk_bytes` at most."""

    folder: Path
    token: str = ""
    memory_batches: int = 32
    disk_bytes: int = 256 * 1024 * 1024
    send_timeout_s: float = 10.0


def telemetry_address(settings: Settings) -> str | None:
    """Where the observatory of this installation takes telemetry, as far as its files tell."""
    for name in ("endpoints.json", "observatory.json"):
        try:
            found = json.loads((settings.data_dir / name).read_text()).get("telemetry")
        except (OSError, ValueError):
            continue
        if found:
            return str(found)
    return None


def new_batch() -> tm.Batch:
    return tm.Batch(batch_id=uuid.uuid4().hex)


class Outbox:
    """Sends batches in order on a thread of its own. `address` is asked again after every failure: ports may move;
    None means that there is no observatory, and everything stays in the folder."""

    def __init__(self, address: Callable[[], str | None], config: OutboxConfig) -> None:
        self._address = address
        self._config = config
        self._known = address()
        self._waiting: deque[tm.Batch] = deque()
        self._changed = threading.Condition()
        self._spill = _Folder(config.folder, config.disk_bytes)
        self._dropped_points = 0
        self._dropped_logs = 0
        self._total_dropped = 0
        self._num_put = 0
        self._busy = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="strata-telemetry", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Points and lines lost so far, for want of room."""
        return self._total_dropped

    @property
    def settled(self) -> int:
        """How many of the batches that were put are safe from a kill -9 of this process: sent, or in the folder (or
        dropped and counted). They settle in order."""
        with self._changed:
            return self._num_put - len(self._waiting) - self._busy

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
        return not self._waiting and not self._busy and self._spill.empty

    def _store(self, batch: tm.Batch) -> None:
        if not self._spill.put(batch):
            self._dropped_points += len(batch.points.value) + batch.dropped_points
            self._dropped_logs += len(batch.logs) + batch.dropped_logs
            self._total_dropped += len(batch.points.value) + len(batch.logs)

    # --- the sending thread

    def _run(self) -> None:
        pause = 0.0
        sender: _Sender | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or (self._waiting or not self._spill.empty), None)
                if pause:
                    self._changed.wait_for(lambda: self._closing, pause)
                if self._closing:
                    break
                stored = self._spill.oldest()
                batch = None if stored else self._waiting.popleft() if self._waiting else None
                self._busy = True
            address = self._where()
            sender = _Sender.renewed(sender, address, self._config, broken=pause > 0)
            sent = self._send(sender, stored, batch)
            with self._changed:
                self._busy = False
                if not sent and batch is not None:
                    self._waiting.appendleft(batch)
                pause = 0.0 if sent else min(_MAX_PAUSE_S, pause * 2 or 0.1)
                self._changed.notify_all()
        if sender is not None:
            sender.close()

    def _send(self, sender: "_Sender | None", stored: Path | None, batch: tm.Batch | None) -> bool:
        """True when the batch is done with: accepted, or refused for good."""
        if sender is None:
            return False
        message = self._spill.read(stored) if stored is not None else batch
        if message is None or sender.send(message):
            if stored is not None:
                self._spill.remove(stored)
            return True
        return False


class _Sender:
    """A connection to one observatory."""

    def __init__(self, address: str, config: OutboxConfig) -> None:
        self.address = address
        self._timeout_s = config.send_timeout_s
        self._channel = Channel(address, token=config.token, patience_s=0.0)
        self._stub = self._channel.stub(TelemetryStub)

    @classmethod
    def renewed(
        cls, known: "_Sender | None", address: str | None, config: OutboxConfig, *, broken: bool
    ) -> "_Sender | None":
        if known is not None and known.address == address and not broken:
            return known
        if known is not None:
            known.close()
        return cls(address, config) if address else None

    def send(self, batch: tm.Batch) -> bool:
        try:
            ack: tm.BatchAck = self._channel.call(self._stub.ReportOnce, batch, timeout_s=self._timeout_s)
        except InvalidArgument as error:
            _log.warning("a batch was refused and is lost: %s", error)
            return True
        except StrataError:
            return False
        if ack.error_code:
            _log.warning("a batch was refused and is lost: %s", ack.error_message)
        return True

    def close(self) -> None:
        self._channel.close()


class _Folder:
    """Batches as files, oldest first, within a budget. Whatever an earlier process left there is sent, too."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._files: deque[tuple[Path, int]] = deque()
        if folder.is_dir():
            found = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
            self._files.extend((path, path.stat().st_size) for path in found)
        self._bytes = sum(size for _, size in self._files)

    @property
    def empty(self) -> bool:
        return not self._files

    def put(self, batch: tm.Batch) -> bool:
        data = batch.SerializeToString()
        if self._bytes + len(data) > self._limit:
            return False
        target = self._folder / f"{time.time_ns():020d}-{batch.batch_id}{_SUFFIX}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            staged = target.with_suffix(".part")
            staged.write_bytes(data)
            staged.replace(target)
        except OSError as error:
            _log.warning("telemetry cannot be kept in %s: %s", self._folder, error.strerror)
            return False
        self._files.append((target, len(data)))
        self._bytes += len(data)
        return True

    def oldest(self) -> Path | None:
        return self._files[0][0] if self._files else None

    def read(self, path: Path) -> tm.Batch | None:
        """None for a file that is gone or broken: it cannot be sent, ever."""
        try:
            return tm.Batch.FromString(path.read_bytes())
        except (OSError, DecodeError):
            return None

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        if self._files and self._files[0][0] == path:
            self._bytes -= self._files.popleft()[1]


def send_folder(folder: Path, address: str, token: str = "") -> int:
    """Sends what an offline run left behind and removes it as it is accepted. Returns how many batches went out;
    raises Unavailable when nobody answers."""
    spill = _Folder(folder, 0)
    count = 0
    with Channel(address, token=token, patience_s=5.0) as channel:
        stub = channel.stub(TelemetryStub)
        while (path := spill.oldest()) is not None:
            batch = spill.read(path)
            if batch is not None:
                channel.call(stub.ReportOnce, batch)
                count += 1
            spill.remove(path)
    return count


def send_batches(batches: Iterable[tm.Batch], address: str, token: str = "") -> int:
    """Sends batches one after the other, each acknowledged before the next. Returns how many points were accepted."""
    accepted = 0
    with Channel(address, token=token, patience_s=5.0) as channel:
        stub = channel.stub(TelemetryStub)
        for batch in batches:
            ack: tm.BatchAck = channel.call(stub.ReportOnce, batch, timeout_s=60.0)
            accepted += ack.accepted_points
    return accepted
