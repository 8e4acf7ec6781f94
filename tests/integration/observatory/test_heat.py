"""GET /api/runs/{run_id}/heat on a real observatory: what was just sent is in the picture, and later points follow."""

from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.waiting import eventually


@pytest.mark.slow
def test_points_from_before_the_first_look_are_in_the_picture(tmp_path: Path) -> None:
    with Cluster(tmp_path, "--no-agent") as cluster:
        eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=120)

        def log(step: int) -> None:
            points = [
                {"metric": "step_time", "rank": rank, "step": step, "value": 2.0 if rank == 77 else 1.0}
                for rank in range(200)
            ]
            cluster.post("/api/runs/wide/points", {"points": points})

        for step in range(12):
            log(step)
        heat = cluster.get("/api/runs/wide/heat?rows=10")
        assert heat["steps"] == [column["step"] for column in heat["columns"]] == list(range(12))
        assert (heat["metric"], heat["num_ranks"], heat["first_ranks"][:2]) == ("step_time", 200, [0, 20])
        assert {column["top_rank"] for column in heat["columns"]} == {77}
        assert heat["columns"][0]["ratios"] == [100, 100, 100, 200, *[100] * 6]
        log(12)
        later = cluster.get(f"/api/runs/wide/heat?rows=10&picture={heat['picture']}&version={heat['version']}")
        assert [column["step"] for column in later["columns"]] == [12]
        assert cluster.get("/api/runs")[0]["wide_metrics"] == {"step_time": 200}
