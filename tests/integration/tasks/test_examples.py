"""The example with the SDK: alone, and as a task of three workers that loses one and still ends with the same weights.
Some seconds of real training.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "train_numpy.py"
_DONE = re.compile(r"done: loss ([\d.]+) after (\d+) steps, weights (\w+)")


def _result(output: str) -> tuple[str, ...]:
    found = _DONE.search(output)
    assert found, output
    return found.groups()


def test_it_trains_alone_without_any_server(tmp_path: Path) -> None:
    environment = {**os.environ, "STRATA_DATA_DIR": str(tmp_path / "strata")}
    command = [sys.executable, str(_SCRIPT), "--data", str(tmp_path / "data"), "--epochs", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    loss, steps, _ = _result(done.stdout)
    assert float(loss) < 0.1
    assert steps == "375"


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    with Nodes(tmp_path, slots=3) as nodes:
        nodes.start()
        results = [_train(nodes, tmp_path, kill=kill) for kill in (False, True)]
    assert results[0] == results[1]


def _train(nodes: Nodes, folder: Path, *, kill: bool) -> tuple[str, ...]:
    arguments = ("--data", str(folder / "data"), "--epochs", "1", "--pause", "0.02")
    task_id = nodes.submit(name="numpy", worker_count=3, entrypoint=("python", str(_SCRIPT), *arguments))
    if kill:
        wait_for(
            lambda: any(
                item["task_id"] == task_id and item["status"] == "completed" for item in nodes.state().checkpoints
            ),
            what="a checkpoint",
        )
        os.kill(nodes.rank_pids(task_id)[2], signal.SIGKILL)
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 2 if kill else 1)
    return _result(nodes.output(task_id, task.attempt, 0))
