"""A disk with no room left: the observatory goes on serving and telling, says so, and takes points and notes again when
there is room."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.support.local_http import LOCAL
from tests.support.receivers import Receiver
from tests.support.small_disk import fill, small_disk

pytestmark = pytest.mark.slow


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with small_disk(tmp_path / "disk", size_mb=80) as disk:
        process = ObservatoryProcess(disk / "data")
        request.addfinalizer(process.dispose)
        _serve_on(disk, process)
        process.stop()


def _serve_on(disk: Path, process: ObservatoryProcess) -> None:
    process.start()
    wait_until(process.store_ready, "the store's start")

    def post(number: int) -> int:
        points = [{"metric": "m", "step": number * 1000 + place, "value": 1.0} for place in range(1000)]
        body = {"batch_id": f"b{number}", "points": points}
        return process.post("/api/runs/full/points", body).status_code

    def taken(number: int) -> bool:
        return post(number) == 200

    assert taken(0)
    fill(disk / "filler")
    codes = [post(number) for number in range(1, 4)]
    assert codes[-1] == 507, "it is not acknowledged: the sender keeps it"
    wait_until(lambda: any(one["kind"] == "disk_full" for one in process.get("/api/alerts")), "the alert")
    assert process.get("/api/status")["refused_batches"] >= 1
    (disk / "filler").unlink()
    for number in range(1, 4):
        wait_until(partial(taken, number), "room again")
    wait_until(lambda: process.get("/api/status")["spool_backlog_bytes"] == 0, "an empty spool")
    shown = process.get("/metrics/full", points=2)["series"]
    assert sum(series["total_points"] for series in shown) == 4_000
    wait_until(lambda: process.get("/api/status")["metric_store_problem"] is None, "no problem left")


def test_a_full_disk_keeps_nobody_from_being_told(
    tmp_path: Path, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file of what was sent is behind meanwhile, which is said once; it is written again when there is room."""
    receiver = Receiver()
    request.addfinalizer(receiver.stop)
    with small_disk(tmp_path / "disk", size_mb=80) as disk:
        process = ObservatoryProcess(disk / "data")
        request.addfinalizer(process.dispose)
        process.start()
        wait_until(process.store_ready, "the store's start")
        hook = {"kind": "webhook", "url": receiver.url("/hook"), "all_alerts": True}
        LOCAL.put(f"{process.http}/api/alerts/targets/hook", json=hook).raise_for_status()
        fill(disk / "filler")
        _told_of(receiver, "disk_full")
        _told_of(receiver, "set_aside")
        kept, tried = process.data_dir / "alert-deliveries.json", process.data_dir / "alert-deliveries.json.part"
        for _ in range(3):
            before = tried.stat().st_mtime_ns
            wait_until(lambda before=before: tried.stat().st_mtime_ns > before, "another try")  # type: ignore[misc]  # bound
        assert "disk_full" not in (kept.read_text() if kept.exists() else "")
        said = [line for line in capfd.readouterr().err.splitlines() if "alert deliveries" in line]
        assert said == ["alert: alert deliveries sets the file of what was sent aside: No space left on device"]
        (disk / "filler").unlink()
        full = _told_of(receiver, "disk_full")
        wait_until(lambda: _kept_of(kept, full) == ["sent"], "what was sent, on the disk")
        wait_until(lambda: "alert deliveries" not in _parts_aside(process), "that nothing is set aside")
        process.stop()


def _told_of(receiver: Receiver, kind: str) -> str:
    """The alert's id, once the target has got it."""

    def told() -> list[str]:
        return [body["alert"]["id"] for body in receiver.told("/hook") if body["alert"]["kind"] == kind]

    return str(wait_until(told, f"an alert of {kind}")[0])


def _kept_of(file: Path, alert: str) -> list[str]:
    kept = json.loads(file.read_text()) if file.exists() else {"told": {}}
    return [one["state"] for one in kept["told"].get(alert, [])]


def _parts_aside(process: ObservatoryProcess) -> set[str]:
    return {one["part"] for one in process.get("/api/status")["set_aside"]}
