"""Backlogs and rows of a kind that once stopped the store's writer for good; real processes, real disks."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest

from strata.clock import SystemClock
from strata.observatory.background.setaside import SetAside
from strata.observatory.live.series import SeriesTable
from strata.observatory.spool.spool import Spool
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.supervised import SupervisedStore
from strata.observatory.store.writer import StoreWriter
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until

_NOW_MS = 1_794_000_000_000
_MONTH_MS = 31 * 86_400_000


def send(process: ObservatoryProcess, batch: Batch) -> None:
    with grpc.insecure_channel(process.telemetry) as channel:
        TelemetryStub(channel).ReportOnce(batch, timeout=60)


def stored(process: ObservatoryProcess, sql: str) -> Any:
    """Asked of the store itself, after a stop."""

    async def ask() -> Any:
        store = SupervisedStore(StoreConfig(path=str(process.data_dir / "metrics")))
        await store.start()
        try:
            await asyncio.wait_for(store.wait_ready(), 60)
            (value,) = (await store.query(sql)).to_rows()[0].values()
            return value
        finally:
            await store.stop()

    return asyncio.run(ask())


def drained(process: ObservatoryProcess) -> bool:
    return bool(process.get("/api/status")["spool_backlog_bytes"] == 0)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_backlog_of_many_segments_arrives_after_an_outage_and_a_kill(observatory: ObservatoryProcess) -> None:
    """Samples make the batches large (about 100 MB in all) and cost the store nothing."""
    wait_until(observatory.store_ready, "the store's start")
    store = observatory.store_pid()
    assert store is not None
    os.kill(store, signal.SIGSTOP)
    batches, rows_json = 110, '["' + "x" * 1_000_000 + '"]'
    for number in range(batches):
        batch = Batch(batch_id=f"b{number}")
        batch.series.add(index=0, run_id="outage", metric="loss", device=65535)
        batch.points.series.append(0)
        batch.points.step.append(number)
        batch.points.event_time_ms.append(_NOW_MS + number)
        batch.points.value.append(1.0)
        batch.samples.add(dataset_id="d", worker_id="w", rows_json=rows_json)
        send(observatory, batch)
    assert len(list((observatory.data_dir / "spool").glob("*.segment"))) >= 4
    observatory.kill()
    os.kill(store, signal.SIGKILL)
    observatory.start()
    wait_until(observatory.store_ready, "the store's return")
    wait_until(lambda: drained(observatory), "an empty spool", 200)
    observatory.stop()
    assert stored(observatory, "SELECT count() FROM {db}.metric_points") == batches


@pytest.mark.slow
def test_points_and_lines_of_hundreds_of_months_arrive_and_do_not_hold_others_up(
    observatory: ObservatoryProcess,
) -> None:
    wait_until(observatory.store_ready, "the store's start")
    batch = Batch(batch_id="old-runs")
    batch.series.add(index=0, run_id="ages", metric="loss", device=65535)
    for step in range(199):
        batch.points.series.append(0)
        batch.points.step.append(step)
        batch.points.event_time_ms.append(_NOW_MS - step * _MONTH_MS)
        batch.points.value.append(1.0)
        batch.logs.add(event_time_ms=_NOW_MS - step * _MONTH_MS, level="info", message=f"line {step}")
    send(observatory, batch)
    observatory.post("/api/runs/later/points", {"points": [{"metric": "loss", "step": 1, "value": 2.0}]})
    wait_until(lambda: drained(observatory), "an empty spool")
    assert observatory.get("/api/status")["set_aside"] == []
    observatory.stop()
    assert stored(observatory, "SELECT count() FROM {db}.metric_points") == 200
    assert stored(observatory, "SELECT count() FROM {db}.logs") >= 199


@pytest.mark.slow
def test_a_flipped_bit_in_the_spool_costs_one_batch_and_is_told(observatory: ObservatoryProcess) -> None:
    wait_until(observatory.store_ready, "the store's start")
    store = observatory.store_pid()
    assert store is not None
    os.kill(store, signal.SIGSTOP)
    for number in range(20):
        points = [{"metric": "loss", "step": number * 10 + place, "value": 1.0} for place in range(10)]
        assert observatory.post("/api/runs/bits/points", {"points": points}).status_code == 200
    observatory.kill()
    os.kill(store, signal.SIGKILL)
    file = max((observatory.data_dir / "spool").glob("*.segment"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    observatory.start()
    wait_until(observatory.store_ready, "the store's start")
    wait_until(lambda: drained(observatory), "an empty spool")
    status = observatory.get("/api/status")
    assert status["spool_damage"]["places"] == 1
    assert status["set_aside"][0]["part"] == "spool"
    assert any(alert["kind"] == "set_aside" for alert in observatory.get("/api/alerts"))
    wait_until(lambda: _shown(observatory) == 190, "the other 19 batches")
    observatory.stop()
    assert stored(observatory, "SELECT count() FROM {db}.metric_points") == 190


def _shown(process: ObservatoryProcess) -> int:
    return sum(series["total_points"] for series in process.get("/metrics/bits", points=2)["series"])


async def test_a_row_that_a_constraint_forbids_is_set_aside_and_the_rest_arrives(tmp_path: Path) -> None:
    store = SupervisedStore(StoreConfig(path=str(tmp_path / "metrics")))
    spool = Spool(tmp_path / "spool", segment_bytes=2_000)
    spool.open()
    told: list[Any] = []
    aside = SetAside(SystemClock(), told.extend)
    writer = StoreWriter(spool, store, SeriesTable(), aside)
    await store.start()
    try:
        await asyncio.wait_for(store.wait_ready(), 60)
        await store.command("ALTER TABLE {db}.metric_points ADD CONSTRAINT small CHECK value < 100")
        for number in range(50):
            batch = Batch()
            batch.series.add(index=0, run_id="r1", metric="loss", device=65535)
            batch.points.series.extend([0] * 10)
            batch.points.step.extend(range(number * 10, number * 10 + 10))
            batch.points.event_time_ms.extend([_NOW_MS] * 10)
            batch.points.value.extend([1000.0 if number == 33 and place == 3 else 1.0 for place in range(10)])
            spool.append([(spool.digest(""), batch.SerializeToString())])
        assert len(list(spool.folder.glob("*.segment"))) >= 3
        await writer.start()
        await asyncio.wait_for(writer.flushed(), 60)
        steps = (await store.query("SELECT step FROM {db}.metric_points"))["step"].to_list()
        assert sorted(steps) == [step for step in range(500) if step != 333]
        assert aside.view()[0].count == 1
        assert "step 333" in aside.view()[0].items[0].item
        assert len(told) == 1
        assert "333" in (spool.folder / "refused.jsonl").read_text()
        await writer.stop()
    finally:
        await store.stop()
        spool.close()
