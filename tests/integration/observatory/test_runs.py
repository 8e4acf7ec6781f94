"""Runs that people rename, annotate and delete: a real server, over restarts, embedded and on a ClickHouse server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from strata.protocol.generated.telemetry_pb2 import Batch
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient
from tests.integration.observatory.test_foreign_rows import shim_port, write_as_stranger
from tests.integration.observatory.test_http import send
from tests.support.local_http import LOCAL

__all__ = ["shim_port"]  # a fixture that is used by name


def batch_of(name: str, points: dict[str, range], status: str = "") -> Batch:
    """Points of several runs in one batch, each run with its own steps."""
    batch = Batch(batch_id=name)
    for index, (run_id, steps) in enumerate(points.items()):
        batch.series.add(index=index, run_id=run_id, metric="loss", device=65535)
        for step in steps:
            batch.points.series.append(index)
            batch.points.step.append(step)
            batch.points.value.append(step / 2)
        if status:
            batch.runs.add(run_id=run_id, name=f"{run_id} by its owner", status=status)
    return batch


def patch(process: ObservatoryProcess, run_id: str, body: Any, **headers: str) -> httpx.Response:
    return LOCAL.patch(f"{process.http}/api/runs/{run_id}", json=body, headers=headers)


def delete(process: ObservatoryProcess, run_id: str, **headers: str) -> httpx.Response:
    return LOCAL.delete(f"{process.http}/api/runs/{run_id}", headers=headers)


def status(process: ObservatoryProcess, path: str) -> int:
    return LOCAL.get(f"{process.http}{path}").status_code


def runs(process: ObservatoryProcess) -> dict[str, dict[str, Any]]:
    return {run["run_id"]: run for run in process.get("/runs")}


def test_a_name_and_notes_are_kept_and_bad_ones_refused(shared_observatory: ObservatoryProcess) -> None:
    process = shared_observatory
    send(process, batch_of("edit-1", {"edited": range(5)}, "running"))
    assert runs(process)["edited"]["name"] == "edited by its owner"
    answer = patch(process, "edited", {"name": "  Baseline, lr 1e-3 ", "notes": "first\nsecond"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["name"], answer.json()["notes"]) == ("Baseline, lr 1e-3", "first\nsecond")
    send(process, batch_of("edit-2", {"edited": range(5, 6)}, "running"))
    shown = runs(process)["edited"]
    assert (shown["name"], shown["notes"]) == ("Baseline, lr 1e-3", "first\nsecond"), "its owner does not undo it"
    assert patch(process, "edited", {"notes": ""}).json()["notes"] is None
    assert patch(process, "edited", {"name": ""}).json()["name"] == "edited by its owner"

    for body, status in (
        ({}, 400),
        ({"name": "x" * 256}, 400),
        ({"name": "two\nlines"}, 400),
        ({"notes": "bell\u0007"}, 400),
        ({"notes": "x" * 20_001}, 400),
        ({"name": 5}, 422),
        ({"colour": "red"}, 422),
    ):
        refused = patch(process, "edited", body)
        assert refused.status_code == status, (body, refused.text)
        assert refused.json()["error"]["code"] == "invalid_argument"
    assert patch(process, "none", {"name": "x"}).status_code == 404
    assert patch(process, "edited", {"name": "x"}, origin="http://evil.example").status_code == 403
    assert delete(process, "edited", origin="http://evil.example").status_code == 403
    assert delete(process, "edited", host="evil.example").status_code == 403


@pytest.mark.parametrize("door", ["info", "summary", "texts", "heat", "media"])
def test_who_has_just_sent_points_finds_the_run_by_every_door(
    shared_observatory: ObservatoryProcess, door: str
) -> None:
    """Pages are told four times a second; who asks is not told that there is no such run until then."""
    for number in range(5):
        send(shared_observatory, batch_of(f"{door}-{number}", {f"{door}-{number}": range(1)}))
        assert status(shared_observatory, f"/api/runs/{door}-{number}/{door}") == 200
    send(shared_observatory, batch_of(f"named-{door}", {f"named-{door}": range(1)}))
    assert patch(shared_observatory, f"named-{door}", {"name": "at once"}).json()["name"] == "at once"


async def test_a_deleted_run_goes_from_every_open_page_and_stays_gone(shared_observatory: ObservatoryProcess) -> None:
    process = shared_observatory
    send(process, batch_of("del-1", {"doomed": range(10), "bystander": range(10)}, "running"))
    client = StreamClient(process.http)
    await client.open()
    await client.wait_for(lambda: client.count("doomed") == 10)

    refused = await asyncio.to_thread(delete, process, "doomed")
    assert refused.status_code == 409
    assert "is running" in refused.json()["error"]["message"]
    assert "doomed" in runs(process)
    assert (await asyncio.to_thread(delete, process, "none")).status_code == 404

    send(process, batch_of("del-2", {"doomed": range(10, 12)}, "finished"))
    deleted = await asyncio.to_thread(delete, process, "doomed")
    assert deleted.json() == {"success": True, "rows_removed": True}
    await client.wait_for(lambda: any(body.get("deleted") == ["doomed"] for _, body in client.events))
    told = next(body for _, body in client.events if body.get("deleted") == ["doomed"])
    assert "doomed" not in [run["run_id"] for run in told["runs"]]
    assert "doomed" not in runs(process)
    assert status(process, "/metrics/doomed") == status(process, "/api/runs/doomed/export") == 404

    # Its writer does not know: what it sends is dropped, what others have in the same batch is not.
    before = client.count("doomed")
    send(process, batch_of("del-3", {"doomed": range(12, 20), "bystander": range(10, 15)}, "running"))
    await client.wait_for(lambda: client.count("bystander") == 15)
    assert client.count("doomed") == before
    assert "doomed" not in runs(process)
    late = process.post("/api/runs/doomed/points", {"points": [{"metric": "loss", "step": 1, "value": 1}]})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    assert "was deleted" in late.json()["error"]["message"]
    counted = await asyncio.to_thread(LOCAL.get, f"{process.http}/metrics")
    assert "strata_ingest_late_points_total 8.0" in counted.text
    fresh = StreamClient(process.http)
    await fresh.open()
    await fresh.wait_for(lambda: any(name == "snapshot" for name, _ in fresh.events))
    assert {head["run_id"] for head in fresh.heads.values()} >= {"bystander"}
    assert "doomed" not in {head["run_id"] for head in fresh.heads.values()}
    await client.close()
    await fresh.close()


@pytest.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.slow)])
def process(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObservatoryProcess]:
    """An observatory over its own engine, and one over a ClickHouse server."""
    if request.param == "server":
        monkeypatch.setenv("CH_HOST", "127.0.0.1")
        monkeypatch.setenv("CH_PORT", str(request.getfixturevalue("shim_port")))
    started = ObservatoryProcess(tmp_path / "data").start()
    try:
        wait_until(started.store_ready, "the store")
        yield started
    finally:
        started.dispose()


@pytest.mark.slow
def test_edits_and_deletions_outlive_a_kill(process: ObservatoryProcess) -> None:
    """Takes about 6 s for each store: the observatory is killed and started again."""
    send(process, batch_of("kept-1", {"doomed": range(10), "named": range(10)}, "finished"))
    assert patch(process, "named", {"name": "Baseline", "notes": "why"}).status_code == 200
    assert patch(process, "named", {"name": "Better"}).status_code == 200
    assert delete(process, "doomed").json() == {"success": True, "rows_removed": True}
    process.kill()
    process.start()
    # Before the store has answered, a late batch gets in; it must not bring the run back either.
    send(process, batch_of("kept-2", {"doomed": range(10, 15), "named": range(10, 12)}, "running"))
    wait_until(lambda: runs(process).get("named", {}).get("name") == "Better", "the name, over a restart")
    assert runs(process)["named"]["notes"] == "why"
    wait_until(lambda: process.get("/api/status")["spool_backlog_bytes"] == 0, "an empty spool")
    assert "doomed" not in runs(process)
    assert status(process, "/metrics/doomed") == status(process, "/api/runs/doomed/export") == 404
    refused = process.post("/api/runs/doomed/points", {"points": [{"metric": "loss", "step": 1, "value": 1}]})
    assert refused.status_code == 409


@pytest.mark.slow
async def test_rows_of_a_deleted_run_by_strangers_are_not_shown(
    tmp_path: Path, shim_port: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Takes about 6 s: foreign clients are real processes. On a server that we may only read, changes are refused."""
    monkeypatch.setenv("CH_HOST", "127.0.0.1")
    monkeypatch.setenv("CH_PORT", str(shim_port))
    process = ObservatoryProcess(tmp_path / "data")
    request.addfinalizer(process.dispose)
    await asyncio.to_thread(process.start)
    await asyncio.to_thread(wait_until, process.store_ready, "the store")
    send(process, batch_of("theirs-1", {"theirs": range(5)}, "finished"))
    assert (await asyncio.to_thread(delete, process, "theirs")).json()["success"]
    await asyncio.to_thread(write_as_stranger, shim_port, "theirs", "loss", 0, 50)
    await asyncio.to_thread(write_as_stranger, shim_port, "other", "loss", 0, 5)
    await asyncio.to_thread(wait_until, lambda: "other" in runs(process), "rows written after them")
    assert "theirs" not in runs(process)
    process.stop()

    monkeypatch.setenv("CH_USER", "viewer")
    process.start()
    await asyncio.to_thread(wait_until, lambda: "other" in runs(process), "the runs of others")
    refused = patch(process, "other", {"name": "mine"})
    assert refused.status_code == 409
    assert "does not keep changes of runs" in refused.json()["error"]["message"]
