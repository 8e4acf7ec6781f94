"""Kill anything, lose nothing: a task of the built-in trainer ends with the same weights and the same sample ledger,
bit for bit, whatever is killed on the way. Real processes; each case takes several seconds of real training.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for, write_dataset

_RANKS = 3
_CONFIG = {"learning_rate": 0.05, "batch_size": 32, "epochs": 2, "checkpoint_every": 10, "pause_s": 0.03}
_DONE = re.compile(r"done after (\d+) steps; weights (\w+), ledger (\w+)")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kill")


@pytest.fixture(scope="module")
def calm(shared: Path) -> Iterator[Nodes]:
    """Whose coordinator and agent nobody kills."""
    with Nodes(shared / "calm", slots=_RANKS) as nodes:
        nodes.start()
        yield nodes


@pytest.fixture(scope="module")
def undisturbed(calm: Nodes, shared: Path) -> list[tuple[str, ...]]:
    """What an undisturbed run gives, by rank."""
    write_dataset(shared / "data", rows=3_000)
    task_id = _submit(calm, shared)
    assert calm.wait_task(task_id).status is TaskStatus.COMPLETED
    return _results(calm, task_id)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path, slots=_RANKS) as nodes:
        nodes.start()
        yield nodes


def _submit(nodes: Nodes, shared: Path) -> str:
    nodes.register("ds", str(shared / "data" / "*.parquet"))
    return nodes.submit(name="train", dataset_id="ds", worker_count=_RANKS, config=_CONFIG)


def _results(nodes: Nodes, task_id: str) -> list[tuple[str, ...]]:
    attempt = nodes.task(task_id).attempt
    return [_result(nodes.output(task_id, attempt, rank)) for rank in range(_RANKS)]


def _result(output: str) -> tuple[str, ...]:
    found = _DONE.search(output)
    assert found, output
    return found.groups()


def _wait_step(nodes: Nodes, task_id: str, step: int) -> None:
    wait_for(
        lambda: (latest := nodes.records().checkpoints.latest(task_id)) is not None and latest.step >= step,
        what=f"checkpoint of step {step}",
    )


def test_a_killed_rank_is_replaced_and_nothing_is_lost(
    calm: Nodes, shared: Path, undisturbed: list[tuple[str, ...]]
) -> None:
    task_id = _submit(calm, shared)
    _wait_step(calm, task_id, 20)
    os.kill(calm.rank_pids(task_id)[1], signal.SIGKILL)
    task = calm.wait_task(task_id)
    assert (task.status, task.attempt, task.course.failures, task.course.preemptions) == (TaskStatus.COMPLETED, 2, 0, 1)
    assert "resumed from step" in calm.output(task_id, 2, 0)
    assert _results(calm, task_id) == undisturbed


@pytest.mark.slow
def test_a_killed_agent_leaves_its_ranks_running_and_the_next_adopts_them(
    nodes: Nodes, shared: Path, undisturbed: list[tuple[str, ...]]
) -> None:
    task_id = _submit(nodes, shared)
    _wait_step(nodes, task_id, 10)
    before = nodes.rank_pids(task_id)
    nodes.kill("agent")
    nodes.start("agent")
    assert nodes.rank_pids(task_id).items() <= before.items()  # on a slow machine some have finished meanwhile
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt, task.course.failures) == (TaskStatus.COMPLETED, 1, 0)
    assert _results(nodes, task_id) == undisturbed


@pytest.mark.slow
def test_a_killed_coordinator_restarts_no_rank(nodes: Nodes, shared: Path, undisturbed: list[tuple[str, ...]]) -> None:
    task_id = _submit(nodes, shared)
    _wait_step(nodes, task_id, 10)
    before = nodes.rank_pids(task_id)
    nodes.kill("coordinator")
    nodes.start("coordinator")
    assert nodes.rank_pids(task_id).items() <= before.items()  # on a slow machine some have finished meanwhile
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt, task.course.failures) == (TaskStatus.COMPLETED, 1, 0)
    assert _results(nodes, task_id) == undisturbed


@pytest.mark.slow
def test_everything_killed_goes_on_from_the_last_checkpoint(
    nodes: Nodes, shared: Path, undisturbed: list[tuple[str, ...]]
) -> None:
    task_id = _submit(nodes, shared)
    _wait_step(nodes, task_id, 20)
    pids = nodes.rank_pids(task_id)
    nodes.kill("coordinator")
    nodes.kill("agent")
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    nodes.start()
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 2)
    assert _results(nodes, task_id) == undisturbed


@pytest.mark.slow
def test_a_rank_that_finishes_while_no_agent_watches_counts_as_finished(
    nodes: Nodes, shared: Path, undisturbed: list[tuple[str, ...]]
) -> None:
    task_id = _submit(nodes, shared)
    _wait_step(nodes, task_id, 40)
    nodes.kill("agent")
    wait_for(lambda: all(_DONE.search(nodes.output(task_id, 1, rank)) for rank in range(_RANKS)), what="all done")
    wait_for(lambda: not any(_alive(pid) for pid in nodes.rank_pids(task_id).values()), what="all ranks gone")
    nodes.start("agent")
    task = nodes.wait_task(task_id)
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 1)
    assert _results(nodes, task_id) == undisturbed


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
