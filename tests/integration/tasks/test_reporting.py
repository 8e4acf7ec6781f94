"""Metrics and logs reach the store whatever happens to the observatory, and a run without a server is sent later. Real
processes: the observatory starts its own database, which takes seconds.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from strata.config import Settings
from strata.types.tasks import TaskStatus
from strata.worker.sync import sync
from tests.support.nodes import Nodes, wait_for, write_dataset

_LOG = """
import sys, time, strata
count = int(sys.argv[1])
run = strata.init(run_id=sys.argv[2])
for step in range(count):
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    if step == count // 2:
        print("half", flush=True)
        time.sleep(1.0)
delivered = run.finish(timeout_s=60.0)
print(f"delivered {delivered} dropped {run.dropped}", flush=True)
"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """For tests that keep to their own run ids."""
    with Nodes(tmp_path_factory.mktemp("reporting"), slots=4) as nodes:
        nodes.start("coordinator", "observatory")
        yield nodes


def _environment(nodes: Nodes) -> dict[str, str]:
    return {**os.environ, "STRATA_DATA_DIR": str(nodes.data_dir), "STRATA_COORDINATOR_ADDR": nodes.address}


def _points(nodes: Nodes, run_id: str, metric: str) -> int:
    found = nodes.get(f"/metrics/{run_id}?metric={metric}") or {"series": []}
    return sum(series["total_points"] for series in found["series"])


def test_no_point_is_lost_while_the_observatory_is_killed(
    nodes: Nodes, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """`--points 1000000` is the full measure, of about a minute."""
    count = int(pytestconfig.getoption("--points"))
    script = tmp_path / "many.py"
    script.write_text(_LOG)
    command = [sys.executable, str(script), str(count), "many"]
    with subprocess.Popen(command, env=_environment(nodes), stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        nodes.kill("observatory")
        nodes.start("observatory")
        words = writer.stdout.readline()
    assert words == "delivered True dropped 0\n"
    wait_for(lambda: _points(nodes, "many", "loss") == count, 120, f"{count} points")


@pytest.mark.slow
def test_a_run_without_a_server_is_sent_later(nodes: Nodes, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(_LOG)
    offline = tmp_path / "offline"
    alone = {**os.environ, "STRATA_DATA_DIR": str(offline), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = [sys.executable, str(script), "500", "few"]
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=True, timeout=60)
    assert "delivered False dropped 0" in done.stdout
    endpoint = nodes.get("/api/status")
    assert endpoint is not None
    (sent,) = sync(address=nodes.telemetry, settings=Settings(data_dir=offline))
    assert sent.run_id == "few"
    assert sync(address=nodes.telemetry, settings=Settings(data_dir=offline)) == []
    wait_for(lambda: _points(nodes, "few", "loss") == 500, 30, "500 points")


@pytest.mark.slow
def test_the_specs_request_trains_and_its_logs_are_readable_by_task_and_worker(nodes: Nodes, tmp_path: Path) -> None:
    """Over HTTP alone, as with curl: a dataset is registered, the request submitted, all the rest looked up."""
    nodes.start("agent")
    unknown = {"name": "x", "type": "training", "dataset_id": "ds-001", "worker_count": 4, "config": {}}
    with pytest.raises(HTTPError) as refused:
        nodes.post("/api/tasks", unknown)
    assert "Ensure dataset_id is registered" in json.load(refused.value)["error"]["hint"]
    nodes.post("/api/datasets", {"id": "ds-001", "path": write_dataset(tmp_path / "data"), "format": "parquet"})
    request = {
        "name": "imagenet-resnet50",
        "type": "training",
        "dataset_id": "ds-001",
        "worker_count": 4,
        "config": {"learning_rate": 0.01, "batch_size": 32, "epochs": 2},
    }
    task_id = nodes.post("/api/tasks", request)["task_id"]
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
    losses = wait_for(lambda: _losses(nodes, task_id, 64), 30, "64 losses")
    assert losses[-1] < losses[0] / 2
    wait_for(lambda: _logs(nodes, task_id, "done after 64 steps"), 30, "logs of the task")
    everybody = {"worker", "agent", "coordinator"}  # each sends its lines by itself
    wait_for(lambda: everybody <= {line["source"] for line in nodes.get(f"/api/tasks/{task_id}/logs?limit=500")}, 30)
    own = wait_for(lambda: nodes.get(f"/api/logs?worker_id={task_id}-3&limit=100"), 30, "logs of a worker")
    assert {line["worker_id"] for line in own} == {f"{task_id}-3"}
    task = wait_for(lambda: (task := nodes.get(f"/api/tasks/{task_id}"))["status"] == "completed" and task)
    assert task["progress"] == 100.0
    saved = wait_for(lambda: _settled(nodes, task_id), 30, "the last checkpoint")
    assert "completed" in saved
    assert "failed" not in saved


def _settled(nodes: Nodes, task_id: str) -> list[str] | None:
    """What became of the task's checkpoints, once nothing is under way."""
    saved = [item["status"] for item in nodes.get("/api/checkpoints") if item["task_id"] == task_id]
    return None if not saved or "in_progress" in saved else saved


def _logs(nodes: Nodes, task_id: str, last: str) -> list[dict[str, Any]] | None:
    found = nodes.get(f"/api/tasks/{task_id}/logs?limit=500")
    return found if found and any(last in line["message"] for line in found) else None


def _losses(nodes: Nodes, task_id: str, count: int) -> list[float] | None:
    found = nodes.get(f"/metrics/{task_id}?metric=loss") or {"series": []}
    values = [value for series in found["series"] for value in series["values"]]
    return values if len(values) == count else None
