"""Leaving in order: a stop is saved and happens at one step for all ranks, a leaving host costs no failure, and a rank
that stands still is named. Real processes.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.types.checkpoints import CheckpointStatus
from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for, write_dataset

_LOOP = """
import time, numpy, strata
run = strata.init(name="loop")
step = 0
while not strata.should_stop():
    run.gang.sum(numpy.zeros(1))
    step += 1
    run.log({"loss": 1 / step}, step=step)
    run.progress(step)
    time.sleep(0.01)
    if step == 50:
        print("looping", flush=True)
print(f"left at {step}", flush=True)
run.finish()
"""
_MEET = """
import os, time, strata
if os.environ["RANK"] == "1":
    time.sleep(600)  # as one that still imports: a SIGTERM ends it at once
run = strata.init()
print("waiting", flush=True)
run.gang
"""
_HANG = """
import time, strata
run = strata.init()
run.progress(7)
with strata.section("eval"):
    time.sleep(2.5)
print("eval is over", flush=True)
time.sleep(60)
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=3) as nodes:
        nodes.start()
        yield nodes


def _script(nodes: Nodes, text: str) -> tuple[str, ...]:
    path = nodes.data_dir.parent / "script.py"
    path.write_text(text)
    return ("python", str(path))


def test_all_ranks_leave_at_the_same_step(nodes: Nodes) -> None:
    """Several seconds: the agreed step lies four seconds ahead."""
    task_id = nodes.submit(name="loop", worker_count=3, entrypoint=_script(nodes, _LOOP))
    wait_for(lambda: all("looping" in nodes.output(task_id, 1, rank) for rank in range(3)), what="three loops")
    nodes.tasks().stop(task_id)
    task = nodes.wait_task(task_id, timeout_s=40)
    assert (task.status, task.reason) == (TaskStatus.STOPPED, "stopped by the user")
    left = [re.search(r"left at (\d+)", nodes.output(task_id, 1, rank)) for rank in range(3)]
    assert all(left)
    assert len({found[1] for found in left if found}) == 1


def test_a_rank_that_waits_for_one_that_is_gone_leaves_without_being_killed(nodes: Nodes) -> None:
    task_id = nodes.submit(name="meet", worker_count=2, entrypoint=_script(nodes, _MEET))
    wait_for(lambda: "waiting" in nodes.output(task_id, 1, 0), what="rank 0 at the meeting")
    nodes.tasks().stop(task_id)
    task = nodes.wait_task(task_id, timeout_s=60)
    assert (task.status, task.reason) == (TaskStatus.STOPPED, "stopped by the user")


@pytest.mark.slow
def test_a_stopped_training_is_saved_where_it_stopped(nodes: Nodes, tmp_path: Path) -> None:
    nodes.register("ds", write_dataset(tmp_path / "data"))
    config = {"epochs": 500, "checkpoint_every": 10_000, "pause_s": 0.02}
    task_id = nodes.submit(name="train", dataset_id="ds", worker_count=2, config=config)
    wait_for(lambda: "epochs of" in nodes.output(task_id, 1, 0), what="training")
    nodes.tasks().stop(task_id)
    assert nodes.wait_task(task_id).status is TaskStatus.STOPPED
    records = nodes.records().checkpoints.records.values()
    saved = [item.step for item in records if item.status is CheckpointStatus.COMPLETED]
    stopped = re.search(r"stopped at step (\d+), which is saved", nodes.output(task_id, 1, 0))
    assert stopped
    assert saved == [int(stopped[1])]


@pytest.mark.slow
def test_a_leaving_host_is_no_failure_and_the_task_goes_on_when_it_is_back(nodes: Nodes, tmp_path: Path) -> None:
    nodes.register("ds", write_dataset(tmp_path / "data"))
    config = {"epochs": 3, "pause_s": 0.02}
    task_id = nodes.submit(name="train", dataset_id="ds", worker_count=2, max_restarts=0, config=config)
    wait_for(lambda: "epochs of" in nodes.output(task_id, 1, 0), what="training")
    nodes.kill("agent", signal.SIGTERM)
    task = nodes.wait_task(task_id, TaskStatus.RECOVERING)
    assert (task.course.failures, task.course.preemptions) == (0, 0)  # they saved and left: nothing was lost
    assert not nodes.rank_pids(task_id)
    nodes.start("agent")
    done = nodes.wait_task(task_id)
    assert (done.status, done.attempt, done.course.failures) == (TaskStatus.COMPLETED, 2, 0)


@pytest.mark.slow
def test_a_rank_without_progress_is_named_but_a_section_is_no_hang(nodes: Nodes) -> None:
    """A few seconds: silence has to last before it means something."""
    task_id = nodes.submit(name="hang", entrypoint=_script(nodes, _HANG), config={"hang_timeout_s": 1.0, "grace_s": 0})
    wait_for(lambda: "eval is over" in nodes.output(task_id, 1, 0), what="eval")
    assert nodes.task(task_id).reason == "attempt 1"
    task = wait_for(lambda: (task := nodes.task(task_id)).reason != "attempt 1" and task, what="the hang is shown")
    assert task.status is TaskStatus.RUNNING
    assert task.reason == "rank 0 has made no step for over 1 s (step 7)"
    nodes.tasks().stop(task_id)
    assert nodes.wait_task(task_id).status is TaskStatus.STOPPED
