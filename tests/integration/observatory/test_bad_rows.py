"""Rows of others that no list can show as they are, next to good ones: text that is not UTF-8, steps beyond 2^53, times
of other centuries. The good ones are shown, live and after a restart; the bad ones are named.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from strata.config import Settings
from strata.observatory.server import Observatory
from strata.types.metrics import MAX_STEP
from tests.integration.observatory.sse import StreamClient
from tests.support.local_http import LOCAL

pytestmark = pytest.mark.slow

_BAD = """
INSERT INTO {db}.metric_points (run_id, metric, host, unit, tags_json, step, value, event_time) VALUES
 ('theirs', concat('bad', unhex('FF')), '', '', '', 1, 1, now64(3)),
 (concat('run', unhex('C3')), 'loss', '', '', '', 1, 1, now64(3)),
 ('theirs', 'host', unhex('FE'), '', '', 1, 1, now64(3)),
 ('theirs', 'unit', '', unhex('FE'), unhex('FE'), 1, 1, now64(3)),
 ('theirs', 'checkpoint_s', '', '', unhex('FE'), 18446744073709551615, 1, now64(3)),
 ('theirs', 'huge', '', '', '', 18446744073709551615, 1, now64(3)),
 ('theirs', 'old', '', '', '', 1, 1, toDateTime64('1901-01-01 00:00:00', 3, 'UTC')),
 ('theirs', 'late', '', '', '', 1, 1, toDateTime64('2298-01-01 00:00:00', 3, 'UTC'))
"""
_GOOD = "INSERT INTO {db}.metric_points (run_id, metric, step, value) VALUES ('good', 'loss', {step}, 1)"


async def test_bad_rows_of_others_spoil_nothing(tmp_path: Path) -> None:
    """Takes about 8 s: an engine starts twice."""
    settings = Settings(data_dir=tmp_path, http_port=0, telemetry_port=0, poll_interval_sec=0.3)
    await watch(settings, [_BAD, _GOOD.replace("{step}", "7")], good=1)
    runs = await watch(settings, [_GOOD.replace("{step}", "8")], good=2)
    assert "⚠ run\\xc3" in runs


async def watch(settings: Settings, rows: list[str], good: int) -> set[str]:
    observatory = Observatory(settings)
    await observatory.start()
    try:
        await asyncio.wait_for(observatory._poller.ready.wait(), 60)
        client = StreamClient(observatory.http)
        await client.open()
        for sql in rows:
            await observatory._store.command(sql)
        await client.wait_for(lambda: client.count("good") == good and client.count("theirs") >= 4)
        await client.close()
        return await asyncio.to_thread(check_lists, observatory.http)
    finally:
        await observatory.stop()


def check_lists(http: str) -> set[str]:
    """Every list answers; returns the runs."""

    def get(path: str) -> Any:
        return LOCAL.get(http + path).raise_for_status().json()

    runs = {run["run_id"]: run for run in get("/runs")}
    assert {"good", "theirs"} <= set(runs)
    assert runs["theirs"]["latest_step"] == MAX_STEP
    shown = {series["metric"]: series for series in get("/metrics/theirs")["series"]}
    assert {"huge", "old", "late", "unit", "host"} <= set(shown)
    assert shown["huge"]["steps"] == [MAX_STEP]
    for path in ("/metrics/good", "/checkpoints/theirs", "/api/dashboard", "/api/outline?runs=theirs"):
        get(path)
    [aside] = [one for one in get("/api/status")["set_aside"] if one["part"] == "rows of others"]
    assert any("bad\\xff" in item["item"] for item in aside["items"])
    return set(runs)
