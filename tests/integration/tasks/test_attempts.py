"""A task of two ranks is killed at a step and goes back to its checkpoint: every answer has each step once, as the
newest attempt measured it, the others are there on request, and what a process of the dead attempt measures then is
refused.
"""

import csv
import io
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

pytestmark = pytest.mark.slow

_STEPS, _SAVED, _KILLED = 30, 9, 20
_TRAIN = f"""
import os, signal, subprocess, sys
import numpy as np
import strata
from strata import CheckpointManager

folder, attempt = os.environ["FOLDER"], int(os.environ["STRATA_ATTEMPT"])
run = strata.init()
if attempt == 1 and run.rank == 1:
    subprocess.Popen([sys.executable, "-c", open(folder + "/zombie.py").read()], start_new_session=True)
with CheckpointManager(folder + "/checkpoints") as checkpoints:
    found = checkpoints.recover()
    step = found.info.step + 1 if found else 0
    while step < {_STEPS}:
        run.gang.sum(np.zeros(1))
        run.log({{"loss": 1000.0 * attempt + step}}, step=step)
        print("attempt", attempt, "step", step, flush=True)
        if step == {_SAVED} and attempt == 1:
            checkpoints.save({{"step": step}}, step=step)
        if step == {_KILLED} and attempt == 1:
            run.reporter.secure()
            run.gang.sum(np.zeros(1))
            if run.rank == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        step += 1
"""
# Outlives its rank, and measures on as if nothing had happened.
_ZOMBIE = """
import os, time
from strata.worker.environment import find_place
from strata.worker.reporter import Reporter
while not os.path.exists(os.environ["FOLDER"] + "/rise"):
    time.sleep(0.05)
place = find_place()
reporter = Reporter(place, place.run_id)
reporter.log({"zombie": 1.0}, 5)
for step in (21, 22, 23):
    reporter.log({"loss": -1.0, "zombie": 1.0}, step)
reporter.add_line("info", "I am still here")
reporter.close()
open(os.environ["FOLDER"] + "/risen", "w").close()
"""


def test_a_killed_task_has_each_step_once_and_its_zombie_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TRAIN)
    (tmp_path / "zombie.py").write_text(_ZOMBIE)
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        task_id = nodes.submit(
            name="again",
            type="script",
            entrypoint=("python", str(tmp_path / "train.py")),
            worker_count=2,
            env={"FOLDER": str(tmp_path)},
            working_dir=str(tmp_path),
        )
        task = nodes.wait_task(task_id, timeout_s=120)
        assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 2), task.reason
        (tmp_path / "rise").touch()
        wait_for(lambda: (tmp_path / "risen").exists(), 60, "the zombie")

        expected = {step: (1000.0 if step <= _SAVED else 2000.0) + step for step in range(_STEPS)}
        wait_for(lambda: _newest(nodes, task_id) == {0: expected, 1: expected}, 60, "every step of both ranks, once")
        assert _newest(nodes, task_id, "&from_step=0") == {0: expected, 1: expected}, "from the store"
        done_again = {step: 1000.0 + step for step in range(_SAVED + 1, _KILLED + 1)}
        found = nodes.get(f"/metrics/{task_id}?metric=loss&attempts=superseded")["series"]
        older = {one["rank"]: dict(zip(one["steps"], one["values"], strict=True)) for one in found}
        assert older == {0: done_again, 1: done_again}
        assert {one["attempt"] for one in found} == {1}
        assert _exported(nodes, task_id) == sorted((rank, *point) for rank in (0, 1) for point in expected.items())
        zombie = nodes.get(f"/metrics/{task_id}?metric=zombie&from_step=0")["series"]
        assert [one["steps"] for one in zombie] == [[5]], "what lies before the checkpoint is taken"

        status = nodes.get("/api/status")
        assert (status["fenced_points"], status["fenced_logs"]) == (6, 1), status["set_aside"]
        info = next(one for one in nodes.get("/runs") if one["run_id"] == task_id)
        assert (info["latest_step"], info["superseded_points"]) == (_STEPS - 1, 2 * len(done_again))
        lines = nodes.get(f"/api/tasks/{task_id}/logs?limit=1000")
        printed = {(line["attempt"], line["message"]) for line in lines if line["message"].startswith("attempt ")}
        assert (1, f"attempt 1 step {_KILLED}") in printed
        assert (2, f"attempt 2 step {_KILLED}") in printed
        assert all(line["message"] != "I am still here" for line in lines)
        assert "of attempt 1 of" in (nodes.data_dir / "observatory.log").read_text()


def _newest(nodes: Nodes, task_id: str, narrowed: str = "") -> dict[int, dict[int, float]]:
    found: dict[str, Any] = nodes.get(f"/metrics/{task_id}?metric=loss{narrowed}") or {"series": []}
    return {one["rank"]: dict(zip(one["steps"], one["values"], strict=True)) for one in found["series"]}


def _exported(nodes: Nodes, task_id: str) -> list[tuple[int, int, float]]:
    with urllib.request.urlopen(f"{nodes.http}/api/runs/{task_id}/export", timeout=60) as answer:
        rows = csv.DictReader(io.StringIO(answer.read().decode()))
        return sorted(
            (int(row["rank"]), int(row["step"]), float(row["value"])) for row in rows if row["metric"] == "loss"
        )
