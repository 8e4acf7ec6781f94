"""Which checkpoint a fork begins with, what it is asked to do, and which checkpoints stay for it."""

from dataclasses import replace
from typing import Any

import pytest

from strata.cluster.model import Cluster
from strata.cluster.tasks import Task
from strata.coordinator.state.forks import forked_spec, held_steps
from strata.errors import CheckpointNotFound, InvalidArgument
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus, checkpoint_id_of
from strata.types.forks import ForkRequest, TaskFork, check_skip, read_skip
from strata.types.tasks import TaskSpec, TaskStatus

ARGV = ("python", "train.py", "--lr", "0.1", "--batch-size=8", "--amp", "--name", "x")
SPEC = TaskSpec(name="parent", entrypoint=ARGV, config={"lr": 0.1, "keep": 1}, worker_count=4, min_workers=2)
PARENT = Task(task_id="parent-1", spec=SPEC, submitted_at=1.0)


def saved(step: int, task_id: str = "parent-1", **values: Any) -> CheckpointInfo:
    told: dict[str, Any] = {"epoch": 0, "size_bytes": 1, "created_at": float(step), "status": "completed", **values}
    name, path = checkpoint_id_of(step, f"g1-{step}"), f"/c/{task_id}/step-{step:012d}"
    return CheckpointInfo(id=name, step=step, path=path, task_id=task_id, **told)


def cluster(*checkpoints: CheckpointInfo) -> Cluster:
    found = Cluster()
    found.tasks[PARENT.task_id] = PARENT
    for record in checkpoints:
        found.checkpoints.keep(record)
    return found


GOOD = (saved(10), saved(20), saved(30, verified=False, reason="bits"), saved(40, status=CheckpointStatus.REMOVED))


def begun(**asked: Any) -> TaskFork:
    fork = forked_spec(cluster(*GOOD), PARENT, ForkRequest(**asked)).fork
    assert fork is not None
    return fork


@pytest.mark.parametrize(
    ("asked", "step"),
    [
        ({}, 20),
        ({"step": 25}, 20),
        ({"step": 19}, 10),
        ({"skip": ((15, 18),)}, 10),
        ({"skip": ((21, 22),)}, 20),
        ({"checkpoint_id": saved(10).id}, 10),
    ],
)
def test_the_newest_good_one_that_fits(asked: dict[str, Any], step: int) -> None:
    fork = begun(**asked)
    assert (fork.task_id, fork.step, fork.checkpoint_id, fork.path) == ("parent-1", step, saved(step).id, "/c/parent-1")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"step": 9}, "no good checkpoint at or before step 9"),
        ({"skip": ((5, 6),)}, "no good checkpoint at or before step 4"),
        ({"checkpoint_id": saved(30).id}, "damaged: bits"),
        ({"checkpoint_id": saved(40).id}, "is removed"),
        ({"checkpoint_id": "step-x"}, "has no checkpoint 'step-x'"),
    ],
)
def test_what_is_not_there_is_said(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointNotFound, match=said):
        begun(**asked)
    with pytest.raises(CheckpointNotFound, match="no good checkpoint to fork from"):
        forked_spec(cluster(), PARENT, ForkRequest())


def test_changes_reach_config_and_command() -> None:
    changes = {"lr": 1e-4, "batch_size": 16, "amp": False, "new": "y"}
    spec = forked_spec(cluster(*GOOD), PARENT, ForkRequest(changes=changes, name="calm", arguments=("--more",)))
    assert spec.config == {"lr": 1e-4, "keep": 1, "batch_size": 16, "amp": False, "new": "y"}
    assert spec.entrypoint[2:] == ("--lr", "0.0001", "--batch-size=16", "--amp", "--name", "x", "--more")
    assert (spec.name, spec.worker_count, spec.min_workers) == ("calm", 4, 2)
    with pytest.raises(InvalidArgument, match="takes no arguments"):
        forked_spec(
            cluster(*GOOD), replace(PARENT, spec=replace(SPEC, entrypoint=())), ForkRequest(arguments=("--more",))
        )


def test_a_checkpoint_is_held_until_the_fork_has_its_own_or_has_ended() -> None:
    found = cluster(*GOOD)
    child = Task(task_id="child-1", spec=forked_spec(found, PARENT, ForkRequest(step=10)), submitted_at=2.0)
    found.tasks[child.task_id] = child
    for status in TaskStatus:
        found.tasks[child.task_id] = replace(child, status=status)
        assert held_steps(found, "parent-1") == (() if status.final else (10,))
    assert held_steps(found, "child-1") == ()
    found.tasks[child.task_id] = child
    found.checkpoints.keep(replace(saved(12, task_id="child-1"), id="step-12.own"))
    assert held_steps(found, "parent-1") == ()


def test_steps_to_leave_out() -> None:
    assert check_skip([(5, 9), (1, 2), (8, 12), (3, 3)]) == ((1, 3), (5, 12))
    assert read_skip("1200..1260") == (1200, 1260)
    assert read_skip("7") == (7, 7)
    for text in ("", "a..b", "1..", "..2", "1...3"):
        with pytest.raises(InvalidArgument, match="names no steps"):
            read_skip(text)
    for skip, said in (
        (((9, 3),), "backwards"),
        (((0, 3),), "first step is 1"),
        (((1, 2**70),), "too far"),
        (tuple((3 * n + 1, 3 * n + 1) for n in range(101)), "101 ranges"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            check_skip(skip)
    with pytest.raises(InvalidArgument, match="holds it already"):
        begun(step=20, skip=((20, 21),))
    with pytest.raises(InvalidArgument, match="a step and a checkpoint were named"):
        ForkRequest(step=1, checkpoint_id="x")
