"""What the HTTP layer is given: live parts of the observatory, made and owned by its composition root."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strata.observatory.http.auth import Guard

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Read by the routers; nothing here is created per request."""

    guard: Guard
    status: Callable[[], dict[str, Any]]
