"""Metrics and logs reach the store whatever happens to the observatory, and a run without a server is sent later. Real
processes: the observatory starts its own database, which takes seconds.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.config import Settings
from strata.types.tasks import TaskStatus
from strata.worker.sync import sync
from tests.support.nodes import Nodes, wait_for, write_dataset

_LOG = """
import sys, time, strata
count = int(sys.argv[1])
run = strata.init(name="many", run_id="many")
began = time.perf_counter()
for step in range(count):
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    if step == count // 2:
        print("half", flush=True)
        time.sleep(1.0)
cost = (time.perf_counter() - began - 1.0) / count * 1e6
delivered = run.finish(timeout_s=60.0)
print(f"delivered {delivered} dropped {run.dropped} us_per_call {cost:.2f}", flush=True)
"""
_COUNT = int(os.environ.get("POINTS", "100000"))


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start("coordinator", "observatory")
        yield nodes


def _environment(nodes: Nodes) -> dict[str, str]:
    return {**os.environ, "STRATA_DATA_DIR": str(nodes.data_dir), "STRATA_COORDINATOR_ADDR": nodes.address}


def _points(nodes: Nodes, run_id: str, metric: str) -> int:
    found = nodes.get(f"/metrics/{run_id}?metric={metric}") or {"series": []}
    return sum(series["total_points"] for series in found["series"])


def test_no_point_is_lost_while_the_observatory_is_killed(nodes: Nodes, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(_LOG)
    command = [sys.executable, str(script), str(_COUNT)]
    with subprocess.Popen(command, env=_environment(nodes), stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        nodes.kill("observatory")
        nodes.start("observatory")
        words = writer.stdout.readline()
    assert words.startswith("delivered True dropped 0 "), words
    wait_for(lambda: _points(nodes, "many", "loss") == _COUNT, 60, f"{_COUNT} points")


def test_a_run_without_a_server_is_sent_later(nodes: Nodes, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(_LOG)
    offline = tmp_path / "offline"
    alone = {**os.environ, "STRATA_DATA_DIR": str(offline)}
    done = subprocess.run(
        [sys.executable, str(script), "500"], env=alone, capture_output=True, text=True, check=True, timeout=60
    )
    assert "delivered False dropped 0" in done.stdout
    endpoint = nodes.get("/api/status")
    assert endpoint is not None
    (sent,) = sync(address=nodes.telemetry, settings=Settings(data_dir=offline))
    assert sent.run_id == "many"
    assert sync(address=nodes.telemetry, settings=Settings(data_dir=offline)) == []
    wait_for(lambda: _points(nodes, "many", "loss") == 500, 30, "500 points")


def test_the_specs_request_trains_and_its_logs_are_readable_by_task_and_worker(nodes: Nodes, tmp_path: Path) -> None:
    nodes.start("agent")
    nodes.register("ds-001", write_dataset(tmp_path / "data"))
    config = {"learning_rate": 0.01, "batch_size": 32, "epochs": 2}
    task_id = nodes.submit(name="imagenet-resnet50", dataset_id="ds-001", worker_count=2, config=config)
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
    losses = wait_for(lambda: _losses(nodes, task_id, 126), 30, "126 losses")
    assert losses[-1] < losses[0] / 2
    logs = wait_for(lambda: nodes.get(f"/api/tasks/{task_id}/logs?limit=500"), 30, "logs of the task")
    assert {"worker", "agent", "coordinator"} <= {line["source"] for line in logs}
    assert any("done after 126 steps" in line["message"] for line in logs)
    own = nodes.get(f"/api/logs?worker_id={task_id}-1&limit=100")
    assert own
    assert {line["worker_id"] for line in own} == {f"{task_id}-1"}
    task = nodes.get(f"/api/tasks/{task_id}")
    assert (task["status"], task["progress"]) == ("completed", 100.0)
    saved = nodes.get("/api/checkpoints")
    assert {item["status"] for item in saved} == {"completed"}


def _losses(nodes: Nodes, task_id: str, count: int) -> list[float] | None:
    found = nodes.get(f"/metrics/{task_id}?metric=loss") or {"series": []}
    values = [value for series in found["series"] for value in series["values"]]
    return values if len(values) == count else None
