"""What is known of a checkpoint's bytes, from the disk to every door: scrub, `strata checkpoints verify`, load. And its
one name. About 15 s: a cluster starts, and a task of two ranks is killed once.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from strata.checkpoint import CheckpointManager
from tests.support.cluster import Cluster, strata
from tests.support.waiting import eventually

_SCRIPT = """
import os, pathlib, sys, time
import numpy, strata
run = strata.init()
folder = pathlib.Path(sys.argv[1])
with run.checkpoints(str(folder / "saved")) as checkpoints:
    found = checkpoints.recover()
    start = found.info.step if found else 0
    if run.rank == 0:
        (folder / f"attempt-{run.place.attempt}").write_text(f"{start} {os.getpid()}")
    for step in range(start + 1, 3):
        checkpoints.save({"x": numpy.full(1000, step + run.rank)}, step=step)
    while not (folder / f"end-{run.place.attempt}").exists():
        time.sleep(0.05)
run.finish()
"""


def _checkpoint(cluster: Cluster, step: int, **wanted: Any) -> dict[str, Any] | None:
    """The newest of the step, once it is as wanted."""
    found = [one for one in cluster.get("/api/checkpoints") if one["step"] == step and one["status"] == "completed"]
    return next((one for one in found if all(one[name] == value for name, value in wanted.items())), None)


def _damage(folder: Path, step: int) -> Path:
    """One byte of rank 1."""
    file = next(folder.glob(f"saved/step-{step:012d}/*/rank-00001.safetensors"))
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    return file


def _verify(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    done = strata("checkpoints", "verify", *arguments, "--data-dir", str(cluster.folder))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_checkpoint_is_checked_by_every_road_and_recovery_passes_over_a_damaged_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    with Cluster(tmp_path / "data", "--slots", "2", environment={"STRATA_SCRUB_MB_S": "500"}) as cluster:
        asked = {"name": "checked", "worker_count": 2, "entrypoint": [sys.executable, str(script), str(tmp_path)]}
        task_id = cluster.post("/api/tasks", asked)["task_id"]
        newest = eventually("the scrub", lambda: _checkpoint(cluster, 2, verified=True), within_s=120)
        assert newest["verified_at_ms"] >= newest["created_at_ms"]
        with CheckpointManager(tmp_path / "saved") as manager:
            assert newest["id"] in {info.id for info in manager.list()}

        file = _damage(tmp_path, 2)
        code, said = _verify(cluster, newest["id"])
        assert (code, "0 good, 1 damaged" in said, str(file) in said) == (1, True, True), said
        damaged = eventually("the verdict", lambda: _checkpoint(cluster, 2, verified=False))
        assert str(file) in damaged["reason"]
        alert = eventually(
            "the alert", lambda: [one for one in cluster.get("/api/alerts") if one["kind"] == "checkpoint_damaged"]
        )[0]
        assert str(file) in alert["message"]
        assert (alert["task_id"], alert["step"]) == (task_id, 2)
        code, said = _verify(cluster, str(tmp_path / "saved"))
        assert (code, "1 good, 1 damaged" in said) == (1, True), said

        os.kill(int((tmp_path / "attempt-1").read_text().split()[1]), signal.SIGKILL)
        resumed = tmp_path / "attempt-2"
        eventually("the next attempt", lambda: resumed.exists() and resumed.read_text(), within_s=120)
        assert resumed.read_text().split()[0] == "1"
        assert eventually("the load", lambda: _checkpoint(cluster, 1, verified=True))
        assert eventually("the step saved anew", lambda: _checkpoint(cluster, 2, verified=True), within_s=60)
        code, said = _verify(cluster)
        assert (code, "2 good, 0 damaged" in said) == (0, True), said
        (tmp_path / "end-2").touch()
        eventually("the end", lambda: cluster.get(f"/api/tasks/{task_id}")["status"] == "completed", within_s=60)


def test_a_store_without_a_cluster_and_a_commit_that_is_damaged_itself(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path / "saved") as manager:
        for step in (1, 2):
            manager.save(b"x" * 100, step=step)
    done = strata("checkpoints", "verify", str(tmp_path / "saved"), "--data-dir", str(tmp_path / "none"))
    assert (done.returncode, "2 good, 0 damaged" in done.stdout) == (0, True), done.stdout + done.stderr
    (tmp_path / "saved/step-000000000002/COMMIT.json").write_text("{}")
    done = strata("checkpoints", "verify", str(tmp_path / "saved"), "--data-dir", str(tmp_path / "none"))
    assert (done.returncode, "1 good, 1 damaged" in done.stdout) == (1, True), done.stdout + done.stderr
    assert "COMMIT.json of step 2" in done.stdout
    done = strata("checkpoints", "verify", str(tmp_path), "--data-dir", str(tmp_path / "none"))
    assert (done.returncode, "there is no complete checkpoint in" in done.stderr) == (1, True)
    done = strata("checkpoints", "verify", "no-such-id", "--data-dir", str(tmp_path / "none"))
    assert done.returncode != 0
