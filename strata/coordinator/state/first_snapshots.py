"""Snapshots of version 1, in which every part of the state had a list of fields of its own, in today's form."""

from typing import Any

from strata.coordinator.state.attempts import Verdict
from strata.types.tasks import mask_env

__all__ = ["renewed"]


def renewed(dumped: dict[str, Any]) -> dict[str, Any]:
    """All but the ends of barriers, which the oldest hold as events."""
    membership, checkpoints = dumped["membership"], dumped["checkpoints"]
    open_attempts = {
        item["attempt"]: item["checkpoint_id"]
        for item in checkpoints["attempts"]
        if item["verdict"] in (Verdict.UNDECIDED, Verdict.PREPARED)
    }
    cluster = {
        **{name: dumped[name] for name in ("cluster_id", "term", "started_at", "agents")},
        "workers": membership["workers"],
        "groups": membership["groups"],
        "datasets": [{"spec": spec, "registered_at": spec["registered_at"]} for spec in dumped["datasets"]["specs"]],
        "tasks": [_masked(task) for task in dumped["tasks"]["tasks"]],
        "checkpoints": checkpoints["records"],
        "attempts": open_attempts,
        "queues": dumped.get("queues", []),  # the oldest know no queues
    }
    return {
        "version": 2,
        "cluster": cluster,
        "seats": [{"task_id": group["task_id"], "holders": group["slots"]} for group in membership["groups"]],
        "shards": dumped["datasets"]["shards"],
        "checkpoints": {"begun": checkpoints["begun"], "attempts": checkpoints["attempts"]},
        "readings": dumped.get("readings", {"layouts": [], "readers": []}),  # nor what loaders read
        "requests": dumped["tasks"]["requests"],
    }


def _masked(task: dict[str, Any]) -> dict[str, Any]:
    """The oldest hold the values of env."""
    return {**task, "spec": {**task["spec"], "env": mask_env(task["spec"]["env"])}}
