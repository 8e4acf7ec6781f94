"""The stream as docs/specification.md lists it, with a plain EventSource, and what the unprefixed paths answer."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from strata.clock import ManualClock
from strata.config import Settings
from strata.observatory.live.runs import RunBook
from strata.observatory.server import Observatory
from strata.observatory.store.table import Table
from tests.integration.observatory.sse import StreamClient
from tests.support.cluster import Cluster
from tests.support.local_http import LOCAL
from tests.support.waiting import eventually


def events(cluster: Cluster, query: str = "", **headers: str) -> Iterator[tuple[str, str, Any]]:
    """(event, id, data) as an EventSource reads them."""
    url = f"{cluster.endpoints['http']}/stream?{query}"
    with httpx.stream("GET", url, headers=headers, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                if "data" in fields:
                    yield fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"])
                fields = {}


def log(cluster: Cluster, run_id: str, *points: dict[str, Any]) -> None:
    assert cluster.post(f"/api/runs/{run_id}/points", {"points": list(points)}) == {"accepted": len(points)}


def test_snapshot_then_deltas_then_runs_meta(cluster: Cluster) -> None:
    log(cluster, "sse-a", {"metric": "loss_t1", "step": 1, "value": 0.5})
    eventually("the next tick", lambda: any(run["run_id"] == "sse-a" for run in cluster.get("/runs")))
    stream = events(cluster, "topics=metrics")
    name, first_id, snapshot = next(stream)
    assert name == "snapshot"
    assert {"epoch", "runs", "series"} <= set(snapshot)
    assert "sse-a" in {run["run_id"] for run in snapshot["runs"]}
    log(cluster, "sse-a", {"metric": "loss_t1", "step": 2, "value": 0.25})
    log(cluster, "sse-b", {"metric": "loss_t1", "step": 1, "value": 0.5})  # a new run is told of at once, not in 30 s
    seen: dict[str, Any] = {}
    for name, _, data in stream:
        assert name != "snapshot", "after the first there are only changes"
        seen.setdefault(name, data)
        if {"delta", "runs_meta"} <= set(seen):
            break
    assert "points" in seen["delta"]
    assert {"run_id", "is_active"} <= set(seen["runs_meta"]["runs"][0])
    epoch, number = first_id.split(":")
    assert epoch == snapshot["epoch"]
    resumed = events(cluster, "topics=metrics", **{"Last-Event-ID": first_id})
    name, next_id, _ = next(resumed)
    assert name in {"delta", "runs_meta"}
    assert int(next_id.split(":")[1]) > int(number)


@pytest.mark.slow
async def test_runs_meta_comes_every_thirty_seconds(tmp_path: Path) -> None:
    """A whole observatory and its real stream on a hand-turned clock: nothing at 29 s, one event past 30, and again.
    Five minutes without data, and the event says that the run is not active any more."""
    clock = ManualClock(wall=time.time())
    settings = Settings(data_dir=tmp_path, http_port=0, telemetry_port=0, poll_interval_sec=0.1)
    observatory = Observatory(settings, clock)
    await observatory.start()
    client = StreamClient(observatory.http)
    try:
        await asyncio.wait_for(observatory._poller.ready.wait(), 120)
        await client.open()
        await _two_polls(observatory, client, 1)
        await client.wait_for(partial(_has_said, client, 1))  # the look at all runs tells of a new one, once
        clock.advance(31)
        await _two_polls(observatory, client, 3)
        for step in (5, 7):
            before = len(_said(client))
            clock.advance(29)
            await _two_polls(observatory, client, step)
            assert len(_said(client)) == before
            clock.advance(1.5)
            await client.wait_for(partial(_has_said, client, before + 1))
        assert _said(client)[-1]
        clock.advance(301)
        await client.wait_for(lambda: not _said(client)[-1])
    finally:
        await client.close()
        await observatory.stop()


def _said(client: StreamClient) -> list[bool]:
    """Each runs_meta so far: whether it calls the strangers' run active."""
    told = [body["runs"] for name, body in client.events if name == "runs_meta"]
    return [any(run["run_id"] == "theirs" and run["is_active"] for run in runs) for runs in told]


def _has_said(client: StreamClient, count: int) -> bool:
    return len(_said(client)) == count


def _has_points(client: StreamClient, count: int) -> bool:
    return client.count("theirs") == count


async def _two_polls(observatory: Observatory, client: StreamClient, step: int) -> None:
    """Until the poller has looked at the store twice, and done what it does after the first look. It brings rows that
    somebody else wrote."""
    for now in (step, step + 1):
        row = {"run_id": ["theirs"], "metric": ["loss"], "step": [now], "value": [1.0]}
        await observatory._store.insert("metric_points", Table.of(row), token=f"theirs-{now}")
        await client.wait_for(partial(_has_points, client, now))


def test_a_run_is_active_for_five_minutes() -> None:
    """By hand-turned clock: a run that a foreign writer wrote, of which nobody says that it lives or has ended."""
    clock = ManualClock()
    runs = RunBook(clock)
    now_ms = round(clock.wall() * 1000)
    runs.seen("theirs", now_ms, now_ms, 1, 1)
    clock.advance(299)
    assert runs.is_active("theirs")
    clock.advance(2)
    assert not runs.is_active("theirs")


def test_runs_have_the_fields_of_the_specification(cluster: Cluster) -> None:
    began = time.time() - 30
    for step in (1, 7):
        log(cluster, "fields-run", {"metric": "loss", "step": step, "value": 1, "event_time": began + step})
    (run,) = [one for one in cluster.get("/runs") if one["run_id"] == "fields-run"]
    assert {"run_id", "start_time", "last_event_time", "latest_step", "is_active"} <= set(run)
    assert run["latest_step"] == 7
    assert run["last_event_time"] - run["start_time"] == pytest.approx(6.0, abs=1.0)
    assert cluster.get("/api/runs")


def test_a_long_series_is_thinned_and_keeps_its_spike(cluster: Cluster) -> None:
    points = [{"metric": "loss", "step": n, "value": 999.0 if n == 3333 else 1.0} for n in range(6_000)]
    log(cluster, "long-run", *points)
    (series,) = cluster.get("/metrics/long-run?metric=loss")["series"]
    assert len(series["steps"]) <= 2_000
    assert series["total_points"] == 6_000
    assert max(series["max"] or series["values"]) == 999.0
    name, _, snapshot = next(events(cluster, "runs=long-run&topics=metrics"))
    assert name == "snapshot"
    assert all(len(one["steps"]) <= 2_000 for one in snapshot["series"])


def test_checkpoints_of_a_run(cluster: Cluster) -> None:
    log(cluster, "saving-run", {"metric": "checkpoint_save", "step": 10, "value": 1.5, "tags": {"path": "s3://b/k"}})
    told = cluster.get("/checkpoints/saving-run")
    assert told["run_id"] == "saving-run"
    assert [one["metric"] for one in told["series"]] == ["checkpoint_save"]
    assert told["series"][0]["steps"] == [10]


@pytest.mark.slow
def test_the_observatory_runs_alone(tmp_path: Path) -> None:
    """Instead of `uvicorn app:app --port 8000`: one command, no coordinator."""
    command = [sys.executable, "-m", "strata", "observatory", "--data-dir", str(tmp_path), "--http-port", "0"]
    environment = {**os.environ, "STRATA_TELEMETRY_PORT": "0", "COORDINATOR_ADDR": "127.0.0.1:1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        ready = tmp_path / "observatory.json"
        eventually("the observatory", ready.exists, within_s=60)
        http = json.loads(ready.read_text())["http"]
        assert LOCAL.get(f"{http}/health").json() == {"status": "ok"}
        assert LOCAL.get(f"{http}/runs").json() == []
    finally:
        process.terminate()
        process.wait(60)
