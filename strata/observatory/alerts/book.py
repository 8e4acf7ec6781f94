"""Findings become alerts: told once, kept on disk, shown on the stream, offered to whoever sends them on."""

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from strata.clock import Clock
from strata.errors import StrataError
from strata.observatory.alerts.delivery_log import DeliveryLog
from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.stream import AlertNews
from strata.observatory.background.part import Part
from strata.observatory.records.fill import fill
from strata.observatory.records.finding import Finding
from strata.observatory.store.base import Store, own_rows
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.fields import to_message
from strata.protocol.generated.telemetry_pb2 import Batch, EventRow

__all__ = ["AlertBook"]

_log = logging.getLogger(__name__)
_KEEP = 500
_MAX_WAITING = 1_000

_NEWEST = """
SELECT id, toUnixTimestamp64Milli(event_time) AS timestamp_ms, kind, severity, message, run_id, task_id, worker_id,
       rank, step
FROM {db}.events WHERE NOT startsWith(kind, 'attempt_') ORDER BY event_time DESC, id DESC LIMIT 500
"""

Accept = Callable[[Batch], Awaitable[Any]]
Notify = Callable[[Alert], None]


class AlertBook(Part):
    """The same kind about the same subject is one alert, for as long as it is found again within five minutes; `log`
    remembers it over a restart."""

    def __init__(self, stream: Broadcaster, clock: Clock, accept: Accept, log: DeliveryLog, notify: Notify) -> None:
        self._stream = stream
        self._clock = clock
        self._accept = accept
        self._log = log
        self._notify = notify
        self._alerts: deque[Alert] = deque(maxlen=_KEEP)
        self._waiting: asyncio.Queue[Alert] = asyncio.Queue(_MAX_WAITING)

    def newest(self) -> list[Alert]:
        return list(self._alerts)

    async def load(self, store: Store) -> None:
        """What was found before this start."""
        known = {alert.id for alert in self._alerts}
        for row in await own_rows(store, _NEWEST):
            if row["id"] not in known and len(self._alerts) < _KEEP:
                self._alerts.append(fill(Alert, **row))

    def report(self, findings: list[Finding]) -> list[Alert]:
        """Shows those that are new at once, and returns them; the disk follows."""
        new, at_ms = self._log.take_new(findings, self._clock.monotonic()), round(self._clock.wall() * 1000)
        fresh = [fill(Alert, one, id=f"alert_{uuid.uuid4().hex[:12]}", timestamp_ms=at_ms) for one in new]
        if not fresh:
            return []
        self._alerts.extendleft(fresh)
        self._stream.publish("alert", AlertNews(alerts=fresh))
        for alert in fresh:
            _log.warning("alert: %s", alert.message)
            self._notify(alert)
            with contextlib.suppress(asyncio.QueueFull):  # already shown; a flood need not be kept whole
                self._waiting.put_nowait(alert)
        return fresh

    async def _run(self) -> None:
        while True:
            alert = await self._waiting.get()
            try:
                row = to_message(EventRow, alert, event_time_ms=alert.timestamp_ms)
                await self._accept(Batch(batch_id=alert.id, events=[row]))
            except StrataError as error:
                _log.warning("an alert could not be kept: %s", error.message)
            except Exception:  # not set aside: that would be an alert again
                _log.exception("alert %s could not be kept", alert.id)
