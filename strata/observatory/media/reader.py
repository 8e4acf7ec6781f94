"""What runs have logged beside numbers, read back: which names there are, at which steps, and what it was."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

from strata.observatory.answers.media import MediaEntries, MediaEntry, MediaKey, MediaName, MediaSteps, RunMedia
from strata.observatory.media.keeper import MediaKeeper
from strata.observatory.store.base import Store, own_rows
from strata.observatory.store.sql import media_entries, media_keys, media_steps

__all__ = ["MAX_STEPS", "MediaReader", "evenly"]

MAX_STEPS = 100_000
_MAX_ANSWER = 8 << 20  # characters of texts: a page asks again for the rest
_SETTLE_S = 2.0
T = TypeVar("T")


class MediaReader:
    """`settled` returns when the store holds what was accepted so far."""

    def __init__(self, store: Store, keeper: MediaKeeper, settled: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._settled = settled
        self.file = keeper.get

    async def keys(self, run_id: str, search: str, limit: int) -> RunMedia:
        await self._settle()
        rows = await own_rows(self._store, *media_keys(run_id, search, limit + 1))
        keys = [MediaKey(**row) for row in rows[:limit]]
        return RunMedia(run_id=run_id, keys=keys, more=len(rows) > limit)

    async def steps(self, name: MediaName) -> MediaSteps:
        await self._settle()
        steps = await self._steps(name, None, None)
        return MediaSteps(**asdict(name), steps=steps[:MAX_STEPS], more=len(steps) > MAX_STEPS)

    async def entries(self, name: MediaName, first: int | None, last: int | None, limit: int) -> MediaEntries:
        """Those between two steps. Fewer than asked for when they are large."""
        await self._settle()
        steps = await self._steps(name, first, last)
        chosen = evenly(steps, limit)
        rows = await own_rows(self._store, *media_entries(asdict(name), chosen)) if chosen else []
        entries = [MediaEntry(**row) for row in rows]
        while len(entries) > 1 and sum(len(entry.text) for entry in entries) > _MAX_ANSWER:
            entries = evenly(entries, len(entries) // 2)
        return MediaEntries(**asdict(name), num_steps=len(steps), entries=entries)

    async def _steps(self, name: MediaName, first: int | None, last: int | None) -> list[int]:
        sql, parameters = media_steps({**asdict(name), "from_step": first, "to_step": last}, MAX_STEPS + 1)
        return [row["step"] for row in await own_rows(self._store, sql, parameters)]

    async def _settle(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                await self._settled()


def evenly(items: Sequence[T], limit: int) -> list[T]:
    """At most so many of them, the first and the last among them."""
    if len(items) <= limit:
        return list(items)
    if limit == 1:
        return [items[-1]]
    return [items[place * (len(items) - 1) // (limit - 1)] for place in range(limit)]
