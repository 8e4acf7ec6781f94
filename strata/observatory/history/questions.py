"""Questions in SQL, one at a time: what was accepted before the question is in the answer, and whoever asks more than
the store can answer is told to wait.
"""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol

from strata.clock import Clock
from strata.errors import Busy
from strata.observatory.answers.questions import SqlAnswer, SqlColumn
from strata.observatory.store.guest import MAX_ROWS
from strata.observatory.store.table import Table

__all__ = ["Questions"]

_MAX_WAITING = 8
_SETTLE_S = 2.0


class _Guests(Protocol):
    async def ask(self, question: str) -> Table: ...


class Questions:
    """`settled` returns when the store holds what was accepted so far."""

    def __init__(self, guests: _Guests, settled: Callable[[], Awaitable[None]], clock: Clock) -> None:
        self._guests = guests
        self._settled = settled
        self._clock = clock
        self._num_asked = 0

    async def ask(self, question: str) -> SqlAnswer:
        """Raises Busy when too many wait, InvalidArgument for what is no question."""
        if self._num_asked >= _MAX_WAITING:
            raise Busy(f"{self._num_asked} questions wait already", hint="Ask again in a moment.")
        self._num_asked += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_S):
                    await self._settled()
            began_at = self._clock.monotonic()
            table = await self._guests.ask(question)
            return await asyncio.to_thread(_answer, table, self._clock.monotonic() - began_at)
        finally:
            self._num_asked -= 1


def _answer(table: Table, seconds: float) -> SqlAnswer:
    columns = [[_plain(value) for value in column.to_list()] for column in table.take(slice(MAX_ROWS)).columns.values()]
    return SqlAnswer(
        columns=[SqlColumn(name=name, type=column.kind) for name, column in table.columns.items()],
        rows=[list(row) for row in zip(*columns, strict=True)],
        truncated=table.num_rows > MAX_ROWS,
        seconds=round(seconds, 4),
    )


def _plain(value: Any) -> Any:
    """As JSON says it. NaN and the infinities are their names: null is what is not there."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case date() | Decimal():
            return str(value)
        case int() if not -(1 << 63) <= value < 1 << 64:
            return str(value)
        case bytes():
            return value.decode(errors="backslashreplace")
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return value
