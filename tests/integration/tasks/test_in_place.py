"""A rank is killed, the others keep their processes, and the training ends with the same weights, bit for bit, in the
same attempt. Real processes.
"""

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from strata.types.tasks import TaskStatus
from tests.integration.tasks.elastic_worker import expected
from tests.support.nodes import Nodes, wait_for

_RANKS = 3
_WORKER = str(Path(__file__).with_name("elastic_worker.py"))
_STEP = re.compile(r"^step (\d+)$", re.MULTILINE)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=_RANKS) as nodes:
        nodes.start("coordinator", "agent")
        yield nodes


def _submit(
    nodes: Nodes, steps: int, pause_s: float, every: int, waits: int = -1, hang_timeout_s: float | None = None
) -> str:
    entrypoint = ("python", _WORKER, str(steps), str(pause_s), str(every), str(waits))
    return nodes.submit(name="elastic", worker_count=_RANKS, entrypoint=entrypoint, hang_timeout_s=hang_timeout_s)


def _outputs(nodes: Nodes, task_id: str, rank: int) -> str:
    """What all processes of a rank have printed, the first one's first."""
    folder = nodes.data_dir / "agent" / "logs" / task_id / "1"
    files = sorted(folder.glob(f"{rank}.*stdout"), key=lambda path: (len(path.name), path.name))
    return "".join(path.read_text() for path in files)


def _steps(nodes: Nodes, task_id: str, rank: int) -> list[int]:
    return [int(step) for step in _STEP.findall(_outputs(nodes, task_id, rank))]


def _has_passed(nodes: Nodes, task_id: str, step: int) -> bool:
    task = nodes.task(task_id)
    assert task.attempt == 1, (
        task.status,
        task.attempt,
        task.course.lives,
        task.reason,
    )  # else nobody would see it here
    return max(_steps(nodes, task_id, 2), default=0) > step


def _kill(nodes: Nodes, task_id: str, rank: int) -> bool:
    """False while there is none: the last one was killed, and its agent has not seen that yet, or just has."""
    try:
        process = psutil.Process(nodes.rank_pids(task_id)[rank])
        alive = process.status() != psutil.STATUS_ZOMBIE
        process.kill()
    except (KeyError, psutil.NoSuchProcess):
        return False
    return alive


def _wait_until_all_take_part(nodes: Nodes, task_id: str, step: int) -> None:
    wait_for(lambda: step in _steps(nodes, task_id, 0), 60, f"step {step}")
    wait_for(lambda: nodes.task(task_id).course.in_place, 60, "that all ranks take part")


def test_a_killed_rank_is_replaced_while_the_others_keep_their_processes(nodes: Nodes) -> None:
    """The others are in a collective, where they wait for the one that is killed."""
    task_id = _submit(nodes, 60, 0.0, 10, waits=1)
    _wait_until_all_take_part(nodes, task_id, 5)
    before = nodes.rank_pids(task_id)
    os.kill(before[1], signal.SIGKILL)
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt, task.course.lives) == (TaskStatus.COMPLETED, 1, (0, 1, 0))
    assert (task.course.preemptions, task.course.failures) == (1, 0)
    for rank in range(_RANKS):
        assert _outputs(nodes, task_id, rank).endswith(f"done with {expected(60, _RANKS)}\n")
    assert _steps(nodes, task_id, 0) == list(range(1, 61))
    for rank in (0, 2):
        assert set(re.findall(r"^pid (\d+)", _outputs(nodes, task_id, rank), re.MULTILINE)) == {str(before[rank])}
    assert re.search(r"world 1: after step \d+ from peer", _outputs(nodes, task_id, 1))


@pytest.mark.slow
def test_a_rank_that_hangs_is_replaced_while_the_others_keep_their_processes(nodes: Nodes) -> None:
    task_id = _submit(nodes, 300, 0.03, 10, hang_timeout_s=8.0)
    _wait_until_all_take_part(nodes, task_id, 5)
    before = nodes.rank_pids(task_id)
    os.kill(before[1], signal.SIGSTOP)
    wait_for(lambda: nodes.task(task_id).course.lives == (0, 1, 0), 60, "that it is replaced")
    told = nodes.task(task_id)
    assert re.match(r"rank 1 hung: no step for \d+ s at step \d+; it stood in .*, stopped by a signal; ", told.reason)
    assert (told.course.stuck_rank, told.course.hung_s) == (None, None)
    task = nodes.wait_task(task_id, timeout_s=120)
    assert (task.status, task.attempt, task.course.lives) == (TaskStatus.COMPLETED, 1, (0, 1, 0))
    assert (task.course.preemptions, task.course.failures) == (0, 1)
    for rank in range(_RANKS):
        assert _outputs(nodes, task_id, rank).endswith(f"done with {expected(300, _RANKS)}\n")
    for rank in (0, 2):
        assert set(re.findall(r"^pid (\d+)", _outputs(nodes, task_id, rank), re.MULTILINE)) == {str(before[rank])}


@pytest.mark.slow
def test_ranks_that_finish_and_ranks_that_stop_are_no_losses(nodes: Nodes) -> None:
    task_id = _submit(nodes, 100_000, 0.01, 0)
    _wait_until_all_take_part(nodes, task_id, 5)
    nodes.tasks().stop(task_id)
    task = nodes.wait_task(task_id)
    assert (task.status, task.course.lives) == (TaskStatus.STOPPED, ())
    assert len({_steps(nodes, task_id, rank)[-1] for rank in range(_RANKS)}) == 1


@pytest.mark.slow
def test_twenty_kills_of_any_rank_and_of_newcomers(nodes: Nodes) -> None:
    """Rank 0 hosts the meetings; two die at once; a newcomer dies while it starts, and while it is met."""
    chance = random.Random(16)  # reproducible
    task_id = _submit(nodes, 600, 0.05, 5)
    _wait_until_all_take_part(nodes, task_id, 3)
    spared = None  # keeps the state in memory while newcomers die before they have it
    for number in range(20):
        mortal = [rank for rank in range(_RANKS) if rank != spared]
        victims = [0] if number % 5 == 0 and 0 in mortal else chance.sample(mortal, 2 if number % 7 == 3 else 1)
        for rank in victims:
            wait_for(partial(_kill, nodes, task_id, rank), 60, f"a process of rank {rank}")
        if number % 3:  # else the next one dies while this one is still being replaced
            reached = max(_steps(nodes, task_id, 2), default=0)
            wait_for(
                partial(_has_passed, nodes, task_id, reached + 6), 40, f"more steps after kill {number} of {victims}"
            )
            spared = None
        else:
            spared = next(rank for rank in mortal if rank not in victims) if spared is None else spared
            time.sleep(chance.random())
    task = nodes.wait_task(task_id, timeout_s=240)
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 1), task.reason
    assert sum(task.course.lives) >= 20
    for rank in range(_RANKS):
        assert f"done with {expected(600, _RANKS)}\n" in _outputs(nodes, task_id, rank)
        steps = _steps(nodes, task_id, rank)
        assert steps == sorted(set(steps))
