"""Time filters take the times that people have at hand, and say so when they cannot."""

import json
from urllib.error import HTTPError
from urllib.parse import quote

import pytest

from tests.support.cluster import Cluster

_START = 1_715_832_000  # 2024-05-16 04:00:00 UTC


@pytest.fixture(scope="module")
def run_id(cluster: Cluster) -> str:
    points = [{"metric": "loss", "step": n, "value": n, "event_time": _START + n} for n in range(10)]
    assert cluster.post("/api/runs/timed/points", {"points": points}) == {"accepted": 10}
    return "timed"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (str(_START + 3), str(_START + 5)),
        ("2024-05-16T04:00:03Z", "2024-05-16T06:00:05+02:00"),
        ("2024-05-16 04:00:03", "2024-05-16 04:00:05.000"),
    ],
)
def test_metrics_by_time(cluster: Cluster, run_id: str, begin: str, end: str) -> None:
    found = cluster.get(f"/metrics/{run_id}?metric=loss&from_time={quote(begin)}&to_time={quote(end)}")
    assert found["series"][0]["steps"] == [3, 4, 5]


def test_metrics_by_step(cluster: Cluster, run_id: str) -> None:
    found = cluster.get(f"/metrics/{run_id}?metric=loss&from_step=2&to_step=6")
    assert found["series"][0]["steps"] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("path", ["/metrics/timed?from_time=", "/metrics/timed?to_time=", "/api/logs?before="])
def test_what_is_no_time_is_refused_with_a_sentence(cluster: Cluster, run_id: str, path: str) -> None:
    del run_id
    with pytest.raises(HTTPError) as refused:
        cluster.get(f"{path}noon")
    assert 400 <= refused.value.code < 500
    error = json.load(refused.value)["error"]
    assert "is 'noon', which is no time" in error["message"]
    assert "ISO 8601" in error["hint"]


def test_logs_before_and_after_a_time(cluster: Cluster) -> None:
    everything = cluster.get("/api/logs?limit=1000")
    assert everything
    assert cluster.get(f"/api/logs?before={quote('2020-01-01 00:00:00')}") == []
    assert cluster.get("/api/logs?after=2020-01-01T00:00:00Z&limit=5")
    assert cluster.get("/api/logs?after=2100-01-01") == []
