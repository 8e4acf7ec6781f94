"""Stopping the writer in the middle of a group: it ends after the group, also when somebody asked it to hurry."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from strata.clock import ManualClock
from strata.observatory.background.setaside import SetAside
from strata.observatory.ingest.points import from_json
from strata.observatory.live.series import SeriesTable
from strata.observatory.spool.spool import Spool
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table
from strata.observatory.store.writer import StoreWriter


class SlowStore:
    """Takes an insert when the test lets it."""

    def __init__(self) -> None:
        self.ready = True
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        raise NotImplementedError

    async def insert(self, table: str, rows: Table, *, token: str) -> None:
        self.begun.set()
        await self.go_on.wait()

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table:
        raise NotImplementedError

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError

    async def wait_ready(self) -> None: ...


async def test_a_stop_during_a_group_that_somebody_waits_for_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The wait after a group is over at once then, in the same turn of the loop in which the cancellation comes."""
    spool, store = Spool(tmp_path), SlowStore()
    spool.open()
    message = from_json("r1", {"points": [{"metric": "loss", "step": 1, "value": 1.0}]}, 1_000)
    end = spool.append([(spool.digest(""), message.SerializeToString())])[0]
    writer = StoreWriter(spool, store, SeriesTable(), SetAside(ManualClock(), lambda _: None))
    await writer.start()
    await store.begun.wait()
    reader = asyncio.create_task(writer.flushed())
    await asyncio.sleep(0)
    stopping = asyncio.create_task(writer.stop())
    await asyncio.sleep(0)
    store.go_on.set()
    async with asyncio.timeout(60):
        await asyncio.gather(stopping, reader)
    assert spool.progress.consumed == end
    assert not caplog.records, "the first cancellation was lost"
    spool.close()
