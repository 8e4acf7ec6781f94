"""Questions in SQL as the observatory passes them on: bounded in number, and in JSON's words."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from strata.clock import SystemClock
from strata.errors import Busy
from strata.observatory.history.questions import Questions
from strata.observatory.store.table import Table


class Store:
    """Answers when it is told to."""

    def __init__(self, table: Table) -> None:
        self.go = asyncio.Event()
        self._table = table

    async def ask(self, question: str) -> Table:
        await self.go.wait()
        return self._table


async def settled() -> None:
    """At once."""


async def test_too_many_at_once_are_told_to_wait_and_what_is_cut_off_says_so() -> None:
    store = Store(Table.of({"a": list(range(10_001))}))
    questions = Questions(store, settled, SystemClock())
    waiting = [asyncio.create_task(questions.ask("SELECT 1")) for _ in range(8)]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="8 questions"):
        await questions.ask("SELECT 1")
    store.go.set()
    answers = await asyncio.gather(*waiting)
    assert all(answer.truncated and len(answer.rows) == 10_000 for answer in answers)
    assert (await questions.ask("SELECT 1")).truncated


async def test_values_that_json_does_not_know_are_said_in_words() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    row = {"i": 2**70, "f": float("nan"), "g": float("-inf"), "t": at, "d": Decimal("1.50"), "b": b"\xff", "n": None}
    store = Store(Table.from_rows([{**row, "l": [float("inf")]}]))
    store.go.set()
    answer = await Questions(store, settled, SystemClock()).ask("SELECT 1")
    assert answer.rows == [[str(2**70), "NaN", "-Infinity", at.isoformat(), "1.50", "\\xff", None, ["Infinity"]]]
    assert not answer.truncated
