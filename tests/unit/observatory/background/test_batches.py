"""Batches of the observatory's own: made durable in order, and counted where there is no room for one."""

import asyncio

import pytest

from strata.clock import ManualClock
from strata.observatory.background import batches
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.setaside import SetAside
from strata.protocol.generated.telemetry_pb2 import Batch


async def test_what_finds_no_room_is_counted_and_the_rest_is_kept_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_MAX_WAITING", 2)
    kept: list[str] = []
    whole = asyncio.Event()

    async def accept(batch: Batch) -> None:
        kept.append(batch.batch_id)
        if len(kept) == 2:
            whole.set()

    aside = SetAside(ManualClock(), lambda _: None)
    queue = BatchQueue(accept, aside)
    for name in ("a", "b", "c"):
        queue.put(Batch(batch_id=name))
    await queue.start()
    await whole.wait()
    await queue.stop()
    assert kept == ["a", "b"]
    assert [(part.part, part.count, part.items[0].item) for part in aside.view()] == [("history", 1, "c")]
