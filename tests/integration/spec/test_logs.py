"""Log lines of a real task, at the levels that the specification lists: error, warn, info, debug."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.ports import free_ports
from tests.support.waiting import eventually

_TRAIN = """
import strata

run = strata.init()
saves = run.checkpoints(keep_count=2)
for step in range(40):
    run.barrier("step", step)
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    if step % 20 == 19:
        saves.save({"weights": [float(step)]}, step=step)
        run.barrier(f"saved-{step}", step)
saves.load()
run.finish()
"""

_BUCKET_THAT_IS_AWAY = """
import strata

run = strata.init()
saves = strata.CheckpointManager("s3://models/a")
saves.save(b"state", step=1)
"""


def submit(cluster: Cluster, script: Path, workers: int, **more: object) -> str:
    request = {"name": script.stem, "worker_count": workers, "entrypoint": [sys.executable, str(script)], **more}
    return str(cluster.post("/api/tasks", request)["task_id"])


def lines(cluster: Cluster, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.get(f"/api/logs?limit=1000&{query}")
    return found


@pytest.fixture(scope="module")
def trained(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A task of two ranks that met 42 times and saved twice."""
    script = tmp_path_factory.mktemp("logs") / "train.py"
    script.write_text(_TRAIN)
    task_id = submit(cluster, script, 2)
    eventually("its end", lambda: cluster.get(f"/api/tasks/{task_id}")["status"] == "completed", within_s=120)
    eventually("its last line", lambda: _with(cluster, task_id, "is completed"), within_s=60)
    return task_id


def _with(cluster: Cluster, task_id: str, words: str) -> list[dict[str, Any]]:
    return [line for line in lines(cluster, f"task_id={task_id}") if words in line["message"]]


def test_info_says_that_barriers_were_reached_and_checkpoints_saved(cluster: Cluster, trained: str) -> None:
    reached = _with(cluster, trained, "barrier 'step' reached")
    assert {line["level"] for line in reached} == {"info"}
    assert "by 2 workers" in reached[0]["message"]
    assert len(reached) < 40, "forty barriers in a few seconds are not forty lines"
    saved = _with(cluster, trained, "saved to")
    assert [line["level"] for line in saved] == ["info", "info"]
    assert all("of step" in line["message"] and "MB in" in line["message"] for line in saved)
    assert {line["worker_id"] for line in saved} == {f"{trained}-0"}
    assert _with(cluster, trained, "is running: attempt 1")[0]["level"] == "info"
    assert _with(cluster, trained, "joined as rank 1")[0]["worker_id"] == f"{trained}-1"


@pytest.mark.slow
def test_what_was_held_back_is_counted(cluster: Cluster, trained: str) -> None:
    eventually(
        "the count of the other barriers",
        lambda: [
            line for line in _with(cluster, trained, "more: barriers reached 'step'") if "… and" in line["message"]
        ],
        within_s=30,
    )


def test_debug_shows_shards_and_attempts_when_asked_for(cluster: Cluster, trained: str) -> None:
    begun = _with(cluster, trained, "begun by ranks")
    assert {line["level"] for line in begun} == {"debug"}
    voted = _with(cluster, trained, "has written its part")
    assert {line["level"] for line in voted} == {"debug"}
    assert len(voted) == 4


def test_a_rank_says_what_its_checkpoints_do(cluster: Cluster, trained: str) -> None:
    loaded = eventually("the load", lambda: _with(cluster, trained, "step 39 loaded from"), within_s=30)
    assert {line["source"] for line in loaded} == {"worker"}
    assert {line["level"] for line in loaded} == {"info"}


@pytest.mark.slow
def test_each_retry_of_a_bucket_is_a_warning_and_a_failed_task_an_error(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "away.py"
    script.write_text(_BUCKET_THAT_IS_AWAY)
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_ports(1)[0]}",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-west-2",
    }
    task_id = submit(cluster, script, 1, env=environment, max_restarts=0)
    tries = eventually(
        "two tries", lambda: (found := _with(cluster, task_id, "next try in"))[1:] and found, within_s=60
    )
    assert {line["level"] for line in tries} == {"warn"}
    assert {line["worker_id"] for line in tries} == {f"{task_id}-0"}
    text = next(line["message"] for line in tries if "try 2 of 9" in line["message"])
    assert "s3://models/a" in text
    assert "error sending request" in text
    failed = eventually("its failure", lambda: _with(cluster, task_id, f"task {task_id} is failed"), within_s=120)
    assert [line["level"] for line in failed] == ["error"]
    errors = lines(cluster, f"task_id={task_id}&level=error")
    assert any("the save of step 1 failed" in line["message"] for line in errors)
