"""A rank that makes no step is ended and its task goes on: asleep, in C code that holds the interpreter's lock, stopped
by a signal. The reason names rank, step and line, and the log holds the stacks. Real processes.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

# Ranks that meet at every step. The last of them does not come back from step 5 of the first attempt, or of any.
_TRAIN = """
import ctypes, sys, time, numpy, strata
run = strata.init()
how, *always = sys.argv[1:]

def hang():
    if how == "sleep":
        time.sleep(1e9)  # sleep
    elif how == "section":
        with run.section("eval", timeout=3):
            time.sleep(1e9)  # section
    elif how == "lock":
        library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
        library.pthread_mutex_lock(mutex)
        library.pthread_mutex_lock(mutex)  # lock
    else:
        with run.section("eval"):
            while how == "stop": time.sleep(0.01)  # stop

for step in range(1, 9):
    run.gang.sum(numpy.zeros(1))
    run.progress(step)
    time.sleep(0.3)
    if step == 5 and run.rank == run.world_size - 1 and (run.place.attempt == 1 or always):
        print("stands", flush=True)
        hang()
run.finish()
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start()
        yield nodes


def _submit(nodes: Nodes, *arguments: str, **values: Any) -> str:
    path = nodes.data_dir.parent / "train.py"
    path.write_text(_TRAIN)
    given: dict[str, Any] = {"name": "train", "hang_timeout_s": 3.0, **values}
    return nodes.submit(entrypoint=("python", str(path), *arguments), **given)


def _told(nodes: Nodes, how: str, rank: int) -> str:
    """The reason as a pattern: how long may vary, and a rank tells its steps once a second, unless it stands."""
    path = nodes.data_dir.parent / "train.py"
    line = next(at for at, line in enumerate(path.read_text().splitlines(), 1) if line.endswith(f"# {how}"))
    return rf"rank {rank} hung: no step for \d+ s at step [345]; it stood in {path}:{line} \(hang\)"


def test_a_c_call_that_holds_the_lock_is_named_and_ended(nodes: Nodes) -> None:
    task_id = _submit(nodes, "lock", max_restarts=0)
    task = nodes.wait_task(task_id)
    assert (task.status, task.course.failures, task.course.preemptions) == (TaskStatus.FAILED, 1, 0)
    assert re.fullmatch(rf"{_told(nodes, 'lock', 0)}; it is not to be restarted \(max_restarts 0\)", task.reason)
    assert "most recent call first" in nodes.output(task_id, 1, 0, "stderr")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sleep", "lock", "stop", "section"])
def test_a_hang_is_ended_and_the_task_goes_on(nodes: Nodes, how: str) -> None:
    """Rank 0 waits for rank 1 in a sum and makes no step either. A stopped process is no section."""
    task_id = _submit(nodes, how, worker_count=2, hang_timeout_s=6.0)
    wait_for(lambda: "stands" in nodes.output(task_id, 1, 1), what="the hang")
    if how == "stop":
        os.kill(nodes.rank_pids(task_id)[1], signal.SIGSTOP)
    reason = nodes.wait_task(task_id, TaskStatus.RECOVERING).reason
    stopped = ", stopped by a signal" if how == "stop" else ""
    assert re.fullmatch(f"{_told(nodes, how, 1)}{stopped}; all ranks go back to the start", reason)
    done = nodes.wait_task(task_id)
    assert (done.status, done.attempt, done.course.failures) == (TaskStatus.COMPLETED, 2, 1)
    assert (done.course.stuck_rank, done.course.hung_s) == (None, None)


@pytest.mark.slow
def test_a_rank_that_hangs_again_and_again_fails_its_task(nodes: Nodes) -> None:
    task = nodes.wait_task(_submit(nodes, "sleep", "always"), timeout_s=90)
    assert (task.status, task.attempt, task.course.failures) == (TaskStatus.FAILED, 3, 3)
    assert task.reason.startswith("rank 0 hung: no step for ")
    assert task.reason.endswith("; 3 attempts in a row brought no new checkpoint")


@pytest.mark.slow
def test_a_hang_is_ended_though_the_coordinator_dies_when_it_is_decided(nodes: Nodes) -> None:
    """The agent is stopped, so that the decision is journaled before anybody can act on it."""
    task_id = _submit(nodes, "sleep")
    wait_for(lambda: "stands" in nodes.output(task_id, 1, 0), what="the hang")
    os.kill(nodes.pid("agent"), signal.SIGSTOP)
    wait_for(lambda: nodes.task(task_id).course.hung_s is not None, what="the decision")
    nodes.kill("coordinator")
    nodes.start("coordinator")
    os.kill(nodes.pid("agent"), signal.SIGCONT)
    assert "rank 0 hung: no step for" in nodes.wait_task(task_id, TaskStatus.RECOVERING).reason
    assert nodes.wait_task(task_id).status is TaskStatus.COMPLETED
