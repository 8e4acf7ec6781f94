"""Ranks that nobody knows by uid or token: they reach the cluster over an address that is not loopback, with the secret
of their attempt alone. The whole SDK works with it."""

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.addresses import needs_address, own_address
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

_SCRIPT = """
import os, sys
import strata
from strata.trust.token import read_token
from strata.config import load_settings
assert read_token(load_settings()) is None and "STRATA_TOKEN" not in os.environ
run = strata.init(config={"lr": 0.1})
for step in range(1, 21):
    run.log({"loss": 1 / step}, step=step)
manager = strata.CheckpointManager(sys.argv[1])
manager.save(step=20, state={"w": 1})
manager.close()
assert run.finish()
"""


@needs_address
def test_a_task_runs_with_the_secret_of_its_attempt_alone(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    flags = ("--host", own_address(), "--slots", "2")
    with Cluster(tmp_path / "data", *flags, environment={"STRATA_INSECURE": "1"}) as cluster:
        host, _, port = cluster.endpoints["grpc"].rpartition(":")
        telemetry = cluster.endpoints["telemetry"]
        env = {
            "STRATA_DATA_DIR": str(tmp_path / "rank"),  # where there is no token
            "COORDINATOR_ADDR": f"{host}:{port}",
            "STRATA_TELEMETRY_ADDR": telemetry,
        }
        entrypoint = [sys.executable, str(script), str(tmp_path / "checkpoints")]
        body = {"name": "elsewhere", "worker_count": 2, "entrypoint": entrypoint, "env": env, "max_restarts": 0}
        task_id = cluster.post("/api/tasks", body)["task_id"]
        eventually("the task's end", lambda: _task(cluster, task_id)["status"] in ("completed", "failed"), within_s=120)
        task = _task(cluster, task_id)
        assert task["status"] == "completed", task
        runs = {run["run_id"]: run for run in _get(cluster, "/runs")}
        assert runs[task_id]["num_points"] >= 40


def _get(cluster: Cluster, path: str) -> Any:
    """With the token: over this address the kernel's word is not asked."""
    token = (cluster.folder / "token").read_text().strip()
    answer = httpx.get(f"{cluster.endpoints['http']}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _task(cluster: Cluster, task_id: str) -> Any:
    return _get(cluster, f"/api/tasks/{task_id}")
