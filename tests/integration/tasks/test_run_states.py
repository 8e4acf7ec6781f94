"""A task's run stands as its task does, with the task's reason, on a real cluster."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import Nodes, wait_for

pytestmark = pytest.mark.slow

_TRAIN = """
import sys, time
import strata

run = strata.init()
run.log({"loss": 1.0}, step=1)
if run.config["ending"] == "fail":
    raise ValueError("no luck")
if run.config["ending"] == "wait":
    time.sleep(600)
"""


def _run(nodes: Nodes, run_id: str) -> dict[str, Any]:
    return next((run for run in nodes.get("/api/runs") or [] if run["run_id"] == run_id), {})


def test_a_run_stands_as_its_task_does(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TRAIN)
    with Nodes(tmp_path, slots=3) as nodes:
        nodes.start("coordinator", "observatory", "agent")

        def submit(ending: str) -> str:
            return nodes.submit(
                name=ending,
                entrypoint=("python", "train.py"),
                worker_count=1,
                max_restarts=0,
                config={"ending": ending, "grace_s": 1},
                working_dir=str(tmp_path),
            )

        failed, done, waiting = submit("fail"), submit("end"), submit("wait")
        wait_for(lambda: _run(nodes, failed).get("state") == "failed", 90, "a failed run")
        assert "ValueError: no luck" in _run(nodes, failed)["reason"]
        wait_for(lambda: _run(nodes, done).get("state") == "finished", 90, "a finished run")
        wait_for(lambda: _run(nodes, waiting).get("state") == "running", 90, "a running run")
        nodes.tasks().stop(waiting)
        wait_for(lambda: _run(nodes, waiting).get("state") == "killed", 90, "a stopped task's run")
        assert [_run(nodes, run)["is_active"] for run in (failed, done, waiting)] == [False] * 3
