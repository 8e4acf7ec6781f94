"""`strata import` of runs that wandb and mlflow themselves have written, into a real observatory: every point, equal
values, and twice the same. `make test-imports` installs both beside this environment.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, strata
from tests.support.waiting import eventually

_PYTHON = os.environ.get("TRACKERS_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _PYTHON, reason="wandb and mlflow are not here: `make test-imports` installs them"),
]
_WANDB = """
import wandb
settings = wandb.Settings(console="off", x_disable_stats=True, silent=True)
about = {"project": "stories", "name": "calm", "config": {"lr": 0.001}, "tags": ["first"]}
run = wandb.init(mode="offline", settings=settings, **about)
for step in range(300):
    run.log({"loss": 1 / (step + 1), "deep": {"a": step * 0.1}})
run.summary["best"] = 0.5
run.finish()
"""
_MLFLOW = """
import sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("stories")
with mlflow.start_run(run_name="calm", tags={"team": "vision"}):
    mlflow.log_param("lr", 0.001)
    for step in range(300):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
"""


def _made(folder: Path, script: str, *arguments: str) -> None:
    environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true", "WANDB_SILENT": "true"}
    subprocess.run([_PYTHON, "-c", script, *arguments], cwd=folder, env=environment, check=True, timeout=300)


def _imported(cluster: Cluster, path: Path, points: int) -> dict[str, Any]:
    for _ in range(2):  # the second time changes nothing
        done = strata("import", str(path), "--data-dir", str(cluster.folder))
        assert done.returncode == 0, done.stderr
    found = done.stdout.split(":")[0], points

    def run() -> dict[str, Any] | None:
        return next((dict(row) for row in cluster.get("/runs") if (row["run_id"], row["num_points"]) == found), None)

    return eventually("the run", run)


def _losses(cluster: Cluster, run_id: str) -> dict[int, float]:
    (series,) = cluster.get(f"/api/metrics/{run_id}?metric=loss")["series"]
    return dict(zip(series["steps"], series["values"], strict=True))


@pytest.mark.timeout(600)
def test_runs_of_wandb_and_mlflow_come_whole_and_once(tmp_path: Path) -> None:
    _made(tmp_path, _WANDB)
    _made(tmp_path, _MLFLOW, (tmp_path / "mlruns").as_uri())
    _made(tmp_path, _MLFLOW, f"sqlite:///{tmp_path}/mlflow.db")
    losses = {step: 1 / (step + 1) for step in range(300)}
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        run = _imported(cluster, tmp_path / "wandb", 600)
        assert (run["name"], run["project"], run["tags"], run["state"]) == ("calm", "stories", ["first"], "finished")
        assert run["config"]["lr"] == 0.001
        assert _losses(cluster, run["run_id"]) == losses
        assert cluster.get(f"/api/runs/{run['run_id']}/summary")["values"]["best"] == 0.5
        for store in ("mlruns", "mlflow.db"):
            run = _imported(cluster, tmp_path / store, 300)
            assert (run["name"], run["project"], run["tags"]) == ("calm", "stories", ["team:vision"])
            assert (run["config"], run["state"]) == ({"lr": 0.001}, "finished")
            assert _losses(cluster, run["run_id"]) == losses
