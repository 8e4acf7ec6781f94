"""A disk with no room left: the observatory goes on serving, says so, and takes points again when there is room."""

from functools import partial
from pathlib import Path

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
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
