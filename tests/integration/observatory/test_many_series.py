"""More series than the live cache holds: whatever was logged can be seen, in a page's stream and over REST, before and
after a restart. What makes room are old series, never new ones.
"""

import asyncio
from typing import Any

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.sse import StreamClient
from tests.support.local_http import LOCAL

pytestmark = pytest.mark.slow

_ORDINARY = 13
_NAMES = 900
_STEPS = 3
_WIDE = 10_000
_BATCH = 2_700


def _value(run: int, name: int, step: int) -> float:
    return run + name / 1_000 + step / 10


def _logged() -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Run → metric → (step, value): the truth that everything below is compared with."""
    truth = {
        f"run-{run:02d}": {
            f"layer/{name:04d}": [(step, _value(run, name, step)) for step in range(_STEPS)] for name in range(_NAMES)
        }
        for run in range(_ORDINARY)
    }
    truth["wide"] = {f"name/{name:05d}": [(0, float(name))] for name in range(_WIDE)}
    truth["afterwards"] = {"loss": [(step, 1.0 / (step + 1)) for step in range(5)]}
    return truth


def _log(http: str, run: str, metrics: dict[str, list[tuple[int, float]]]) -> None:
    points = [
        {"metric": metric, "step": step, "value": value} for metric, rows in metrics.items() for step, value in rows
    ]
    for start in range(0, len(points), _BATCH):
        body = {"points": points[start : start + _BATCH]}
        LOCAL.post(f"{http}/api/runs/{run}/points", json=body).raise_for_status()


async def _outline(http: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What a page is told when it opens: (run, metric) → number, total and newest value."""
    client = StreamClient(http, params={"sparse": "true", "topics": "metrics"})
    await client.open()
    await client.wait_for(lambda: any(name == "snapshot" for name, _ in client.events))
    await client.close()
    snapshot = next(body for name, body in client.events if name == "snapshot")
    assert snapshot.get("omitted_runs", []) == []
    told = snapshot.get("outline") or dict.fromkeys(("id", "run", "metric", "total_points", "value"), ())
    columns = zip(told["id"], told["run"], told["metric"], told["total_points"], told["value"], strict=True)
    return {
        (told["runs"][run], told["metrics"][metric]): {"id": number, "total": total, "value": value}
        for number, run, metric, total, value in columns
    }


def _points(http: str, numbers: list[int]) -> dict[int, list[tuple[int, float]]]:
    answer = LOCAL.get(f"{http}/api/series", params={"ids": ",".join(map(str, numbers)), "points": 2000})
    body = answer.raise_for_status().json()
    assert body["missing"] == []
    return {one["id"]: list(zip(one["steps"], one["values"], strict=True)) for one in body["series"]}


def _told(http: str, truth: dict[str, dict[str, list[tuple[int, float]]]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The outline once it is the whole truth. A snapshot is shared until the next tick, so it may be a moment old."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    expected = {(run, metric): (len(rows), rows[-1][1]) for run, by in truth.items() for metric, rows in by.items()}

    def right() -> bool:
        found.update(asyncio.run(_outline(http)))
        return {key: (one["total"], one["value"]) for key, one in found.items()} == expected

    wait_until(right, "the outline of everything that was logged", 120)
    return found


def _check_all(http: str, truth: dict[str, dict[str, list[tuple[int, float]]]]) -> None:
    outline = _told(http, truth)
    for run, metrics in truth.items():
        chosen = [*list(metrics)[:20], *list(metrics)[-20:]]
        found = _points(http, [outline[run, metric]["id"] for metric in chosen])
        for metric in chosen:
            assert found[outline[run, metric]["id"]] == metrics[metric], (run, metric)
        answer = LOCAL.get(f"{http}/metrics/{run}", params={"metric": chosen[0]}).json()["series"][0]
        assert list(zip(answer["steps"], answer["values"], strict=True)) == metrics[chosen[0]]


@pytest.mark.timeout(300)
def test_everything_that_was_logged_can_be_seen(observatory: ObservatoryProcess) -> None:
    truth = _logged()
    for run, metrics in truth.items():
        _log(observatory.http, run, metrics)
    _check_all(observatory.http, truth)
    # An old run goes on: its newest point and its first are both there.
    truth["run-00"]["layer/0000"].append((3, 42.0))
    _log(observatory.http, "run-00", {"layer/0000": [(3, 42.0)]})
    _check_all(observatory.http, truth)
    runs = {run["run_id"]: run for run in LOCAL.get(f"{observatory.http}/runs").json()}
    assert runs["run-00"]["num_points"] == _NAMES * _STEPS + 1
    assert runs["wide"]["num_series"] == _WIDE

    observatory.kill()
    observatory.start()
    _check_all(observatory.http, truth)
