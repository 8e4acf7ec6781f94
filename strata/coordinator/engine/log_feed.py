"""The coordinator's own log lines on their way to the observatory, beside those of agents and workers. Never blocks the
event loop: lines wait in a bounded buffer, and a thread sends them.
"""

import logging
import socket
import threading
import time
from collections import deque

from strata.client.batches import new_batch
from strata.client.endpoints import telemetry_address
from strata.client.telemetry import Outbox, OutboxConfig
from strata.config import Settings
from strata.protocol.generated import telemetry_pb2 as tm
from strata.trust.access import find_access

__all__ = ["LogFeed"]

_INTERVAL_S = 0.5
_BUFFER = 10_000
_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"))


class LogFeed(logging.Handler):
    """Takes the records of `strata.*` that their loggers let through (STRATA_LOG). A record's extra `task_id` and
    `worker_id` go with it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._host = socket.gethostname()
        self._lines: deque[tm.LogLine] = deque(maxlen=_BUFFER)
        self._dropped = 0
        self._closing = threading.Event()
        config = OutboxConfig(folder=settings.data_dir / "coordinator" / "spill", access=find_access(settings))
        self._outbox = Outbox(lambda: telemetry_address(settings), config)
        self._thread = threading.Thread(target=self._run, name="log-feed", daemon=True)
        self._logger = logging.getLogger("strata")

    def start(self) -> None:
        self._logger.addHandler(self)
        self._thread.start()

    def stop(self) -> None:
        self._logger.removeHandler(self)
        self._closing.set()
        self._thread.join()
        self._outbox.close(1.0)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("strata.client"):
            return  # what sending itself has to say must not be sent
        if len(self._lines) == _BUFFER:
            self._dropped += 1
        level = next((name for number, name in _LEVELS if record.levelno >= number), "debug")
        line = tm.LogLine(
            event_time_ms=int(record.created * 1e3),
            level=level,
            message=self.format(record),
            source="coordinator",
            task_id=getattr(record, "task_id", ""),
            worker_id=getattr(record, "worker_id", ""),
            host=self._host,
            stream="log",
            sequence=time.monotonic_ns() // 1_000,
        )
        self._lines.append(line)

    def _run(self) -> None:
        while not self._closing.wait(_INTERVAL_S):
            self._send()
        self._send()

    def _send(self) -> None:
        batch = new_batch()
        batch.dropped_logs, self._dropped = self._dropped, 0
        while self._lines and len(batch.logs) < 1_000:
            batch.logs.append(self._lines.popleft())
        if batch.logs:
            self._outbox.put(batch)
