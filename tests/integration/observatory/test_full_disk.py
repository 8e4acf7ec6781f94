"""A disk with no room left: the observatory goes on serving, says so, and takes points again when there is room."""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until

_SIZE_MB = 80


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of a few megabytes."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE_MB}m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            return  # full, which is what was wanted


def test_a_full_disk_is_told_and_nothing_is_lost(small_disk: Path, request: pytest.FixtureRequest) -> None:
    process = ObservatoryProcess(small_disk / "data")
    request.addfinalizer(process.dispose)
    process.start()
    wait_until(process.store_ready, "the store's start")

    def post(number: int) -> int:
        points = [{"metric": "m", "step": number * 1000 + place, "value": 1.0} for place in range(1000)]
        body = {"batch_id": f"b{number}", "points": points}
        return process.post("/api/runs/full/points", body).status_code

    def taken(number: int) -> bool:
        return post(number) == 200

    assert taken(0)
    fill(small_disk / "filler")
    codes = [post(number) for number in range(1, 4)]
    assert codes[-1] == 507, "it is not acknowledged: the sender keeps it"
    wait_until(lambda: any(one["kind"] == "disk_full" for one in process.get("/api/alerts")), "the alert")
    assert process.get("/api/status")["refused_batches"] >= 1
    (small_disk / "filler").unlink()
    for number in range(1, 4):
        wait_until(partial(taken, number), "room again")
    wait_until(lambda: process.get("/api/status")["spool_backlog_bytes"] == 0, "an empty spool")
    shown = process.get("/metrics/full", points=2)["series"]
    assert sum(series["total_points"] for series in shown) == 4_000
    wait_until(lambda: process.get("/api/status")["metric_store_problem"] is None, "no problem left")
    process.stop()
