"""The demo's training, killed and left alone: the same curves and the same stories, bit for bit."""

import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from strata.client.channel import Channel
from strata.client.records import RecordsClient
from strata.config import Settings
from strata.demo.job import kill_now_and_then, submit_stories
from strata.types.tasks import TaskStatus
from strata.types.workers import MemberState
from tests.support.cluster import Cluster
from tests.support.nodes import Nodes, wait_for
from tests.support.waiting import eventually

_STEPS = 100
_PATIENCE_S = 240.0
_CURVES = ("loss", "loss_of_rank", "grad_norm", "lr", "val/loss")


def _submit(nodes: Nodes, pause_s: float = 0.0) -> str:
    settings = Settings(data_dir=nodes.data_dir)
    return submit_stories(settings, nodes.address, num_workers=2, steps=_STEPS, pause_s=pause_s).task_id


def _finished(nodes: Nodes, task_id: str) -> dict[str, Any]:
    """Everything that a run shows, as the page gets it."""
    task = nodes.wait_task(task_id, timeout_s=_PATIENCE_S)
    assert task.status is TaskStatus.COMPLETED, (task.reason, nodes.output(task_id, task.attempt, 0, "stderr"))
    shown: dict[str, Any] = {}
    for metric in _CURVES:
        found = wait_for(partial(nodes.get, f"/metrics/{task_id}?metric={metric}&points=2000"), 60, metric)
        shown[metric] = {one["rank"]: dict(zip(one["steps"], one["values"], strict=True)) for one in found["series"]}
    shown["sample"] = wait_for(partial(_samples, nodes, task_id), 60, "the last text in the store")
    return shown


def _samples(nodes: Nodes, task_id: str) -> dict[int, str] | None:
    """All of them, or nothing yet: unlike points, texts are read from the store, which gets them a moment later."""
    samples = {one["step"]: one["text"] for one in nodes.get(f"/api/runs/{task_id}/texts")}
    return samples if _STEPS in samples else None


@pytest.mark.slow
def test_it_learns_and_a_kill_changes_no_bit_of_it(tmp_path: Path) -> None:
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        calm = _finished(nodes, _submit(nodes))
        task_id = _submit(nodes, pause_s=0.1)
        once = threading.Event()  # the line that is said about the first kill ends the killing
        kill_now_and_then(nodes.address, task_id, once, lambda _: once.set(), every_s=0.1)
        killed = _finished(nodes, task_id)
        assert nodes.task(task_id).attempt > 1
        newest = nodes.records().checkpoints.latest(task_id)
    assert killed == calm
    assert calm["loss"][0].keys() == set(range(1, _STEPS + 1))
    assert set(calm["loss_of_rank"]) == {0, 1}
    assert calm["val/loss"][0].keys() == calm["sample"].keys() == {1, 50, 100}
    assert calm["val/loss"][0][100] < calm["val/loss"][0][1] / 2
    assert newest is not None
    assert newest.step == _STEPS
    assert newest.size_bytes > 2_000_000


@pytest.mark.slow
def test_after_ctrl_c_its_ranks_have_left_and_none_is_lost(tmp_path: Path) -> None:
    with Cluster(tmp_path, "--slots", "2") as cluster:
        grpc = cluster.endpoints["grpc"]
        task_id = submit_stories(Settings(data_dir=tmp_path), grpc, num_workers=2).task_id
        eventually("a step of every rank", lambda: _steps(cluster) == 2, within_s=_PATIENCE_S)
        cluster.stop(signal.SIGINT)
    with Cluster(tmp_path, "--no-agent") as cluster:
        with Channel(cluster.endpoints["grpc"]) as channel:
            left = {worker.rank: worker.state for worker in RecordsClient(channel).workers(task_id)}
        assert left == {0: MemberState.LEFT, 1: MemberState.LEFT}
        eventually("the task on the page", lambda: cluster.get("/api/tasks"), within_s=60)
        assert cluster.get("/api/workers") == []


def _steps(cluster: Cluster) -> int:
    """How many ranks have made a step."""
    return sum((worker["current_step"] or 0) > 0 for worker in cluster.get("/api/workers"))
