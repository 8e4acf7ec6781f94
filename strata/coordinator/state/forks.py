"""Forks: with which checkpoint one begins, what it is asked to do, and which checkpoints must stay for it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from strata.cluster.model import Cluster
from strata.cluster.tasks import Task
from strata.errors import CheckpointNotFound, InvalidArgument
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.forks import ForkRequest, TaskFork, check_skip
from strata.types.tasks import TaskSpec

__all__ = ["forked_spec", "held_steps"]


def forked_spec(cluster: Cluster, parent: Task, asked: ForkRequest) -> TaskSpec:
    """The parent's spec with the changes. Its env is masked, as the parent's is."""
    skip = check_skip(asked.skip)
    found = _chosen(cluster, parent, asked, skip)
    fork = TaskFork(
        task_id=parent.task_id,
        step=found.step,
        checkpoint_id=found.id,
        path=found.path.rpartition("/")[0],
        skip=skip,
        changes=dict(asked.changes),
        by=asked.by,
    )
    if asked.arguments and not parent.spec.entrypoint:
        raise InvalidArgument(
            f"task {parent.task_id!r} runs a built-in {parent.spec.type!r}, which takes no arguments",
            hint="Change its config instead.",
        )
    return replace(
        parent.spec,
        name=asked.name or parent.spec.name,
        config={**parent.spec.config, **asked.changes},
        entrypoint=(*_set_options(parent.spec.entrypoint, asked.changes), *asked.arguments),
        fork=fork,
    )


def held_steps(cluster: Cluster, task_id: str) -> tuple[int, ...]:
    """Steps of this task's checkpoints that forks begin with which have none of their own yet. A fork that has ended
    holds nothing, for nobody says when it is forgotten; resumed too late, it says that its checkpoint is gone."""
    steps = {
        task.task_id: fork.step
        for task in cluster.tasks.values()
        if (fork := task.spec.fork) and fork.task_id == task_id and not task.status.final
    }
    saved = cluster.checkpoints.latest_by_task() if steps else {}
    return tuple(sorted({step for name, step in steps.items() if name not in saved}))


def _chosen(cluster: Cluster, parent: Task, asked: ForkRequest, skip: Sequence[tuple[int, int]]) -> CheckpointInfo:
    records = [record for record in cluster.checkpoints.records.values() if record.task_id == parent.task_id]
    if asked.checkpoint_id:
        return _named(parent, records, asked.checkpoint_id)
    done = [record for record in records if record.status is CheckpointStatus.COMPLETED]
    good = [record for record in done if record.verified is not False]
    if not good:
        raise CheckpointNotFound(
            f"task {parent.task_id!r} has no good checkpoint to fork from",
            hint="A fork begins with one. Its script must save checkpoints.",
        )
    bound = skip[0][0] - 1 if asked.step is None and skip else asked.step
    before = [record for record in good if bound is None or record.step <= bound]
    if not before:
        steps = sorted(record.step for record in good)
        raise CheckpointNotFound(
            f"task {parent.task_id!r} has no good checkpoint at or before step {bound}",
            hint=f"Its first good one is of step {steps[0]}, its last of step {steps[-1]}.",
        )
    return max(before, key=lambda record: record.recovery_order)


def _named(parent: Task, records: Sequence[CheckpointInfo], checkpoint_id: str) -> CheckpointInfo:
    found = next((record for record in records if record.id == checkpoint_id), None)
    if found is None:
        raise CheckpointNotFound(
            f"task {parent.task_id!r} has no checkpoint {checkpoint_id[:80]!r}",
            hint="`strata checkpoints --json` lists the ids.",
        )
    if found.status is not CheckpointStatus.COMPLETED:
        why = f": {found.reason}" if found.reason else ""
        raise CheckpointNotFound(f"checkpoint {found.id} is {found.status}{why}")
    if found.verified is False:
        raise CheckpointNotFound(
            f"checkpoint {found.id} is damaged: {found.reason}", hint="Fork from an older one, with --step."
        )
    return found


def _set_options(argv: Sequence[str], changes: Mapping[str, Any]) -> tuple[str, ...]:
    """The command with new values where it names a changed key as an option: `--lr 0.1` or `--lr=0.1`."""
    given = {key: value for key, value in changes.items() if not isinstance(value, bool)}  # a flag has no value
    options = {f"--{key.replace('_', dash)}": _text(value) for key, value in given.items() for dash in "_-"}
    found = list(argv)
    for place, word in enumerate(argv):
        name, equals, _ = word.partition("=")
        if name not in options:
            continue
        if equals:
            found[place] = f"{name}={options[name]}"
        elif place + 1 < len(argv) and not argv[place + 1].startswith("--"):
            found[place + 1] = options[name]
    return tuple(found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
