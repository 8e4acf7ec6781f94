"""The README's five lines, word by word: alone and started again, and on two workers with a kill -9 in the middle."""

import csv
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.client.channel import Channel
from strata.client.records import RecordsClient
from strata.client.tasks import TasksClient
from tests.support.cluster import Cluster
from tests.support.nodes import wait_for
from tests.support.pages import block

FIVE_LINES = block("README.md", "Five lines")
STEPS = 240

# What the README leaves to its reader by name. The model sums over the ranks, so that one of them alone cannot go on.
PRELUDE = """
import time
import numpy as np

model = {"weights": np.zeros(2)}

def train_step(batch):
    x = batch["x"]
    rows = job.run.gang.sum(np.array([x.sum(), (x * x).sum(), float(len(x))]))
    model["weights"] = 0.99 * model["weights"] + rows[:2] / rows[2]
    time.sleep(0.01)
    return float(model["weights"].sum())
"""


def _folder(path: Path) -> Path:
    """A newcomer's folder: the script and its data, the same for everybody who asks."""
    (path / "data").mkdir(parents=True)
    values = np.random.default_rng(5).normal(size=STEPS * 64)
    for number, part in enumerate(np.split(values, 8)):
        pq.write_table(pa.table({"x": part}), path / "data" / f"part-{number}.parquet", row_group_size=512)
    (path / "train.py").write_text(PRELUDE + FIVE_LINES)
    return path


def _start(folder: Path, up: Cluster) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "strata", "run", "--workers", "2", "--data-dir", str(up.folder), "train.py"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _saved(up: Cluster, task: str) -> int:
    with Channel(up.endpoints["grpc"], patience_s=20.0) as channel:
        step = TasksClient(channel).get(task).saved_step
    return -1 if step is None else step


def _pid(up: Cluster, task: str, rank: int) -> int:
    with Channel(up.endpoints["grpc"], patience_s=20.0) as channel:
        workers = RecordsClient(channel).workers(task)
    return next(int(one.metadata["pid"]) for one in workers if one.rank == rank)


def _losses(up: Cluster, task: str, file: Path) -> dict[str, dict[int, set[float]]]:
    command = [sys.executable, "-m", "strata", "export", task, str(file), "--data-dir", str(up.folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    found: dict[str, dict[int, set[float]]] = defaultdict(lambda: defaultdict(set))
    with file.open() as rows:
        for row in csv.DictReader(rows):
            if row["metric"] == "loss":
                found[row["rank"]][int(row["step"])].add(float(row["value"]))
    return found


def _task(up: Cluster, known: set[str]) -> str:
    def fresh() -> str | None:
        names = {str(task["id"]) for task in up.get("/api/tasks")} - known
        return names.pop() if names else None

    found: str = wait_for(fresh, 60, "a task")
    return found


@pytest.mark.slow
def test_on_two_workers_with_a_kill_the_loss_curve_is_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    with Cluster(tmp_path / "strata", "--slots", "2") as up:
        calm = _start(_folder(tmp_path / "calm"), up)
        first = _task(up, set())
        said = calm.communicate(timeout=180)[0]
        assert calm.returncode == 0, said

        killed = _start(_folder(tmp_path / "killed"), up)
        second = _task(up, {first})
        wait_for(lambda: _saved(up, second) >= 100, 90, "a checkpoint of step 100")
        os.kill(_pid(up, second, 1), signal.SIGKILL)
        output = killed.communicate(timeout=180)[0]
        assert killed.returncode == 0, output
        assert output.count("goes on after step") == 1, output

        undisturbed = _losses(up, first, tmp_path / "calm.csv")
        assert {rank: sorted(steps) for rank, steps in undisturbed.items()} == {
            rank: list(range(1, STEPS + 1)) for rank in ("0", "1")
        }
        assert _losses(up, second, tmp_path / "killed.csv") == undisturbed


def test_alone_it_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "alone")
    environment = {**os.environ, "STRATA_DATA_DIR": str(tmp_path / "strata"), "STRATA_QUIET": "1"}
    command = [sys.executable, "train.py"]
    running = subprocess.Popen(command, cwd=folder, env=environment)
    commit = tmp_path / "strata" / "checkpoints" / "resnet50"
    wait_for(lambda: len(list(commit.glob("*/COMMIT.json"))) >= 1, 60, "a checkpoint of step 100")
    running.send_signal(signal.SIGKILL)
    running.wait(10)
    again = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert again.stderr.startswith("goes on after step ")
