"""Steps that a later attempt did again: every answer has each step once, with the value of the newest attempt, and the
superseded ones on request. What a dead attempt measures after its successor began is refused and counted.
"""

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient
from tests.support.local_http import LOCAL

Steps = dict[int, float]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[ObservatoryProcess]:
    process = ObservatoryProcess(tmp_path / "data").start()
    wait_until(process.store_ready, "the store's start")
    yield process
    process.dispose()


def _log(observatory: ObservatoryProcess, run: str, attempt: int, steps: Steps, at: float, rank: int = 0) -> Any:
    """As rank `rank` of this attempt does, at this time."""
    tags = {"strata_attempt": attempt}
    points = [
        {"metric": "loss", "step": step, "value": value, "rank": rank, "event_time": at, "tags": tags}
        for step, value in steps.items()
    ]
    answer = observatory.post(f"/api/runs/{run}/points", {"points": points})
    assert answer.status_code == 200, answer.text
    return answer.json()


def _by_rank(series: list[dict[str, Any]]) -> dict[int, Steps]:
    for one in series:
        assert len(set(one["steps"])) == len(one["steps"]) == one["total_points"], "each step is there once"
    return {one["rank"]: dict(zip(one["steps"], one["values"], strict=True)) for one in series}


def _newest(observatory: ObservatoryProcess, run: str, **narrowed: int) -> dict[int, Steps]:
    return _by_rank(observatory.get(f"/metrics/{run}", metric="loss", **narrowed)["series"])


def _exported(observatory: ObservatoryProcess, run: str, **asked: str) -> list[tuple[int, int, int, float]]:
    text = LOCAL.get(f"{observatory.http}/api/runs/{run}/export", params=asked).text
    rows = csv.DictReader(io.StringIO(text))
    return sorted((int(row["rank"]), int(row["attempt"]), int(row["step"]), float(row["value"])) for row in rows)


async def test_every_answer_has_the_newest_attempt_of_each_step(shared_observatory: ObservatoryProcess) -> None:
    started = shared_observatory
    first = {step: 1.0 + step for step in range(10)}
    second = {step: 100.0 + step for step in range(5, 8)}
    expected = {**{step: first[step] for step in range(5)}, **second}
    began = time.time()
    client = StreamClient(started.http)
    await client.open()
    for rank in (0, 1):
        _log(started, "r", 1, first, began, rank)
    await client.wait_for(lambda: client.count("r") == 20)
    for rank in (0, 1):
        _log(started, "r", 2, second, began + 5, rank)
    assert _newest(started, "r") == {0: expected, 1: expected}, "at once, though the cache forgot them"
    assert _newest(started, "r", from_step=0) == {0: expected, 1: expected}, "from the store"
    await client.wait_for(lambda: client.count("r") == 16)
    shown = {step: value for step, _, value in client.of("r", "loss")}
    assert shown == expected
    info = wait_until(lambda: _settled(started, "r"), "the run's figures")
    assert (info["num_points"], info["latest_step"], info["superseded_points"]) == (16, 7, 10)
    both = [(rank, 1 if step < 5 else 2, step, value) for rank in (0, 1) for step, value in expected.items()]
    assert _exported(started, "r") == sorted(both)
    gone = [(rank, 1, step, first[step]) for rank in (0, 1) for step in range(5, 10)]
    assert _exported(started, "r", attempts="superseded") == gone
    assert _exported(started, "r", attempts="all") == sorted(both + gone)
    older = started.get("/metrics/r", attempts="superseded")["series"]
    assert [one["attempt"] for one in older] == [1, 1]
    older_steps = {step: first[step] for step in range(5, 10)}
    assert _by_rank(older) == {0: older_steps, 1: older_steps}
    attempts = [one["attempt"] for one in started.get("/metrics/r", attempts="all")["series"]]
    assert sorted(attempts, key=str) == [1, 1, None, None]
    await client.close()


def _settled(observatory: ObservatoryProcess, run: str) -> dict[str, Any] | None:
    found = [one for one in observatory.get("/runs") if one["run_id"] == run and one["superseded_points"]]
    return found[0] if found else None


def test_what_a_dead_attempt_measures_late_is_refused_and_what_it_measured_before_is_kept(
    shared_observatory: ObservatoryProcess,
) -> None:
    started = shared_observatory
    began = time.time()
    _log(started, "late", 1, dict.fromkeys(range(6), 1.0), began)
    _log(started, "late", 2, {4: 2.0, 5: 2.0}, began + 5)
    zombie = _log(started, "late", 1, {3: 1.5, 5: 1.5, 6: 1.5}, began + 9)
    assert zombie == {"accepted": 1}, "step 3 is done by nobody else"
    left_over = _log(started, "late", 1, {6: 1.25}, began + 1)
    assert left_over == {"accepted": 1}
    status = started.get("/api/status")
    assert status["fenced_points"] == 2
    told = next(part for part in status["set_aside"] if part["part"] == "earlier attempts")
    assert (told["count"], told["items"][0]["item"]) == (2, "a point of attempt 1 of late")
    assert "strata_ingest_fenced_points_total 2.0" in LOCAL.get(f"{started.http}/metrics").text
    values = started.get("/metrics/late", from_step=0)["series"][0]
    assert list(zip(values["steps"], values["values"], strict=True))[:3] == [(0, 1.0), (1, 1.0), (2, 1.0)]
    newest = [(step, value) for _, _, step, value in _exported(started, "late")]
    assert sorted(newest) == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (3, 1.5), (4, 2.0), (5, 2.0)]
    gone = _exported(started, "late", attempts="superseded")
    assert [(step, value) for _, _, step, value in gone] == [(4, 1.0), (5, 1.0), (6, 1.25)]


@pytest.mark.slow
def test_a_restart_knows_what_was_superseded(started: ObservatoryProcess) -> None:
    began = time.time()
    _log(started, "r", 1, dict.fromkeys(range(2000), 1.0), began)
    _log(started, "r", 2, dict.fromkeys(range(1500, 1600), 2.0), began + 5)
    started.kill()
    started.start()
    wait_until(started.store_ready, "the store's start")
    info = wait_until(lambda: _settled(started, "r"), "the run's figures")
    assert (info["num_points"], info["latest_step"], info["superseded_points"]) == (1_600, 1_599, 500)
    for narrowed in ({}, {"from_step": 0}):
        found = started.get("/metrics/r", **narrowed)["series"]
        assert [(one["total_points"], one["steps"][-1], one["values"][-1]) for one in found] == [(1_600, 1_599, 2.0)]
    refused = _log(started, "r", 1, {1_700: 9.0}, began + 9)
    assert refused == {"accepted": 0}
    _log(started, "r", 2, {1_600: 2.0}, began + 10)
    found = started.get("/metrics/r", from_step=1_490)["series"][0]
    assert found["total_points"] == 111
