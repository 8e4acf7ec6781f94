"""Rows that others write into metric_points, through the unmodified HTTP driver, appear live within two polls."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from strata.config import Settings
from strata.observatory.server import Observatory
from strata.observatory.store.table import Table
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient
from tests.support.clickhouse import clickhouse
from tests.support.pages import block
from tests.support.waiting import PATIENCE

_FOREIGN = """
import sys, time, clickhouse_connect
from strata.observatory.store.schema import _METRIC_POINTS
client = clickhouse_connect.get_client(host="127.0.0.1", port=int(sys.argv[1]), autogenerate_session_id=False)
client.command("CREATE DATABASE IF NOT EXISTS training_observability")
client.command(_METRIC_POINTS.format(db="training_observability"))
run, metric, first, count = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
rows = [[run, metric, step, step * 0.5] for step in range(first, first + count)]
client.insert("training_observability.metric_points", rows, column_names=["run_id", "metric", "step", "value"])
print(time.time())
"""
_STATEMENT = """
import sys, clickhouse_connect
client = clickhouse_connect.get_client(host="127.0.0.1", port=int(sys.argv[1]), autogenerate_session_id=False)
client.command(sys.argv[2])
"""
_POLL_S = 1.5


@pytest.fixture
def shim_port(tmp_path: Path) -> Iterator[int]:
    with clickhouse(tmp_path / "db") as port:
        yield port


def write_as_stranger(port: int, run: str, metric: str, first: int, count: int) -> float:
    """Returns when the rows were in, by the wall clock."""
    arguments = [str(port), run, metric, str(first), str(count)]
    command = [sys.executable, "-c", _FOREIGN, *arguments]
    return float(subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout)


def _counts(client: StreamClient, total: int) -> bool:
    return client.count("theirs") == total


def shown_at(client: StreamClient, count: int) -> float:
    """When the delta came with which `count` points of strangers' run were there."""
    seen = 0
    for (name, body), arrived in zip(client.events, client.arrived, strict=True):
        ids = {number for number, head in client.heads.items() if head["run_id"] == "theirs"}
        if name == "delta":
            seen += sum(len(steps) for number, steps, _, _ in body["points"] if number in ids)
        if seen >= count:
            return arrived
    raise AssertionError(f"{seen} of {count} points came in deltas")


@pytest.mark.slow
async def test_strangers_rows_reach_the_stream_exactly_once(
    tmp_path: Path, shim_port: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Takes about 10 s: a ClickHouse stand-in, the observatory and foreign clients are all real processes."""
    monkeypatch.setenv("CH_HOST", "127.0.0.1")
    monkeypatch.setenv("CH_PORT", str(shim_port))
    process = ObservatoryProcess(tmp_path / "data", poll_s=_POLL_S)
    request.addfinalizer(process.dispose)
    process.start()
    await asyncio.to_thread(wait_until, process.store_ready, "the connection to the server")
    assert process.get("/api/status")["metric_store"] == "clickhouse"
    client = StreamClient(process.http)
    await client.open()

    for first, count in ((0, 50), (50, 7)):
        written = await asyncio.to_thread(write_as_stranger, shim_port, "theirs", "loss", first, count)
        await client.wait_for(partial(_counts, client, first + count))
        assert shown_at(client, first + count) - written <= PATIENCE * 2 * _POLL_S

    ours = {"points": [{"metric": "loss", "step": step, "value": 1.0} for step in range(20)]}
    assert (await asyncio.to_thread(process.post, "/api/runs/mixed/points", ours)).status_code == 200
    await client.wait_for(lambda: client.count("mixed") == 20)
    await asyncio.to_thread(write_as_stranger, shim_port, "mixed", "loss", 20, 5)
    await client.wait_for(lambda: client.count("mixed") == 25)
    steps = [step for step, _, _ in client.of("mixed", "loss")]
    assert sorted(steps) == list(range(25))

    command = [sys.executable, "-c", _STATEMENT, str(shim_port), block("docs/writing-metrics.md", "Into ClickHouse")]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=60)
    await client.wait_for(lambda: client.count("sweep-7") == 1)
    assert [(step, value) for step, _, value in client.of("sweep-7", "loss")] == [(4, 0.35)]

    await asyncio.to_thread(wait_until, lambda: process.get("/api/status")["spool_backlog_bytes"] == 0, "empty spool")
    runs = {run["run_id"]: run for run in process.get("/runs")}
    assert runs["theirs"]["num_points"] == 57
    await client.close()

    await asyncio.to_thread(process.stop)
    await asyncio.to_thread(process.start)
    again = StreamClient(process.http)
    await again.open()
    await again.wait_for(lambda: (again.count("theirs"), again.count("mixed")) == (57, 25))
    assert [step for step, _, _ in again.of("theirs", "loss")] == list(range(57))
    await again.close()


@pytest.mark.slow
async def test_rows_that_others_put_into_the_embedded_engine_reach_the_stream(tmp_path: Path) -> None:
    """Takes about 6 s: an engine starts twice. Its folder has one owner, so a stranger writes through that one."""
    settings = Settings(data_dir=tmp_path, http_port=0, telemetry_port=0, poll_interval_sec=_POLL_S)
    for start, total in ((0, 40), (40, 60)):
        observatory = Observatory(settings)
        await observatory.start()
        try:
            await asyncio.wait_for(observatory._poller.ready.wait(), 60)
            client = StreamClient(observatory.http)
            await client.open()
            await client.wait_for(partial(_counts, client, start))  # what was there before
            rows = Table.of(
                {
                    "run_id": ["theirs"] * (total - start),
                    "metric": ["loss"] * (total - start),
                    "step": range(start, total),
                    "value": [1.0] * (total - start),
                }
            )
            await observatory._store.insert("metric_points", rows, token=f"strangers-{start}")
            written = time.time()
            await client.wait_for(partial(_counts, client, total))
            assert shown_at(client, total - start) - written <= PATIENCE * 2 * _POLL_S
            await client.close()
        finally:
            await observatory.stop()


@pytest.mark.slow
async def test_somebody_elses_server_can_be_watched_without_any_rights(
    tmp_path: Path, shim_port: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Takes about 6 s: the public table alone is enough to show runs and follow them; nothing is created."""
    await asyncio.to_thread(write_as_stranger, shim_port, "theirs", "loss", 0, 50)
    for name, value in (("CH_HOST", "127.0.0.1"), ("CH_PORT", str(shim_port)), ("CH_USER", "viewer")):
        monkeypatch.setenv(name, value)
    process = ObservatoryProcess(tmp_path / "data", poll_s=0.3)
    request.addfinalizer(process.dispose)
    process.start()
    await asyncio.to_thread(wait_until, lambda: process.get("/runs"), "the runs of others")
    client = StreamClient(process.http)
    await client.open()
    await client.wait_for(lambda: client.count("theirs") == 50)
    await asyncio.to_thread(write_as_stranger, shim_port, "theirs", "loss", 50, 5)
    await client.wait_for(lambda: client.count("theirs") == 55)
    assert "cannot be created" in process.get("/api/status")["metric_store_problem"]
    await client.close()
