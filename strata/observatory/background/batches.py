"""Batches that the observatory itself writes: what it saw of tasks, checkpoints and runs, for the store."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from strata.observatory.background.part import Part
from strata.observatory.background.setaside import SetAside
from strata.protocol.generated.telemetry_pb2 import Batch

__all__ = ["BatchQueue"]

_MAX_WAITING = 2_000


class BatchQueue(Part):
    """Takes batches at once, for those who cannot wait, and makes them durable by `accept`, one after the other."""

    def __init__(self, accept: Callable[[Batch], Awaitable[Any]], aside: SetAside) -> None:
        self._accept = accept
        self._aside = aside
        self._waiting: asyncio.Queue[Batch] = asyncio.Queue(_MAX_WAITING)

    def put(self, batch: Batch) -> None:
        try:
            self._waiting.put_nowait(batch)
        except asyncio.QueueFull:
            self._aside.note("history", batch.batch_id, "too many wait to be kept in the metric store")

    async def _run(self) -> None:
        while True:
            batch = await self._waiting.get()
            with self._aside.guard("history", batch.batch_id):
                await self._accept(batch)
