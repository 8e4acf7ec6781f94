"""What the HTTP layer is given: live parts of the observatory, made and owned by its composition root."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strata.clock import Clock
from strata.observatory.broadcaster import Broadcaster
from strata.observatory.curves import CurveReader
from strata.observatory.http.auth import Guard
from strata.observatory.intake import Intake
from strata.observatory.live import LiveView
from strata.observatory.logbook import LogBook

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Read by the routers; nothing here is created per request."""

    guard: Guard
    clock: Clock
    status: Callable[[], dict[str, Any]]
    intake: Intake
    live: LiveView
    broadcaster: Broadcaster
    curves: CurveReader
    logs: LogBook
