"""kill -9 of the observatory while its spool is still being replayed: a page that comes back with its cursor, and
anyone who asks over REST, sees every acknowledged point, once.
"""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient

_SERIES = 20
_RUN = "restarted"
# Seconds from the moment it serves until it is killed again: before the engine is there, while it loads, after.
_LIVES = (0.0, 0.2, 0.8, 1.4, 2.0, 2.6)


class Writer:
    """About 1,000 points a second in numbered batches, each sent until it is acknowledged."""

    def __init__(self, process: ObservatoryProcess) -> None:
        self._process = process
        self.acknowledged = 0

    async def run(self) -> None:
        while True:
            await self._send(self.acknowledged)
            self.acknowledged += 1
            await asyncio.sleep(0.02)

    async def _send(self, number: int) -> None:
        batch = Batch(batch_id=f"b-{number}")
        for index in range(_SERIES):
            batch.series.add(index=index, run_id=_RUN, metric=f"m{index}", device=65535)
        batch.points.series.extend(range(_SERIES))
        batch.points.step.extend([number] * _SERIES)
        batch.points.event_time_ms.extend([1_794_000_000_000 + number] * _SERIES)
        batch.points.value.extend(number + index / 100 for index in range(_SERIES))
        while True:
            try:
                async with grpc.aio.insecure_channel(self._process.telemetry) as channel:
                    stub: Any = TelemetryStub(channel)
                    await stub.ReportOnce(batch, timeout=2)
                return
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_page_that_comes_back_while_the_spool_is_replayed_misses_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Takes about 25 s: seven starts of real processes under load."""
    process = ObservatoryProcess(tmp_path / "data")
    request.addfinalizer(process.dispose)
    await asyncio.to_thread(process.start)
    writer, client = Writer(process), StreamClient(process.http)
    writing = asyncio.create_task(writer.run())
    await client.open()
    await client.wait_for(lambda: client.count(_RUN) > 0)
    for life_s in _LIVES:
        await asyncio.sleep(life_s)  # the moment of the kill is what is tested
        safe = writer.acknowledged
        await asyncio.to_thread(process.kill)
        await client.close()
        await asyncio.to_thread(process.start)
        client.move_to(process.http)
        await client.open(resume=True)
        assert await asyncio.to_thread(_total, process) >= safe * _SERIES, "REST answers with a part of the run"
    await asyncio.sleep(0.5)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)

    await asyncio.to_thread(wait_until, lambda: _idle(process), "an empty spool")
    expected = await asyncio.to_thread(_stored, process)
    assert expected.total() in (writer.acknowledged * _SERIES, (writer.acknowledged + 1) * _SERIES)
    assert max(expected.values()) == 1
    await client.wait_for(partial(_equal, client, expected), 20)
    fresh = StreamClient(process.http)
    await fresh.open()
    await fresh.wait_for(partial(_equal, fresh, expected), 20)
    await fresh.close()
    await client.close()


def _equal(client: StreamClient, expected: "Counter[tuple[str, int, int, float]]") -> bool:
    shown: Counter[tuple[str, int, int, float]] = Counter()
    for number, head in client.heads.items():
        shown.update((head["metric"], step, time, value or 0.0) for step, time, value in client.points[number])
    return shown == expected


def _total(process: ObservatoryProcess) -> int:
    return sum(series["total_points"] for series in process.get(f"/metrics/{_RUN}", points=2)["series"])


def _idle(process: ObservatoryProcess) -> bool:
    status = process.get("/api/status")
    return bool(status["metric_store_ready"] and status["spool_backlog_bytes"] == 0)


def _stored(process: ObservatoryProcess) -> "Counter[tuple[str, int, int, float]]":
    """Straight from the store: a step range is never answered by the cache."""
    found: Counter[tuple[str, int, int, float]] = Counter()
    for one in process.get(f"/metrics/{_RUN}", from_step=0)["series"]:
        found.update((one["metric"], *point) for point in zip(one["steps"], one["times"], one["values"], strict=True))
    return found
