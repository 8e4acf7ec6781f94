"""All records at one moment in their public form: how a follower starts, before events carry it on."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from strata.cluster.barriers import BarrierEnd
from strata.cluster.datasets import Dataset
from strata.cluster.members import Agent, Group, Worker
from strata.cluster.model import Cluster
from strata.cluster.queues import queue_order
from strata.cluster.tasks import Task
from strata.sharding.queue import ShardQueue
from strata.types.checkpoints import CheckpointInfo
from strata.types.plain import Records, from_plain
from strata.types.tokens import TokenRecord

__all__ = ["copy_cluster", "dump_cluster", "load_cluster"]

Guard = Callable[[str], AbstractContextManager[object]]
_Record = TypeVar("_Record")


def dump_cluster(cluster: Cluster) -> dict[str, Any]:
    copied = copy_cluster(cluster)
    return {name: value.written() if isinstance(value, Records) else value for name, value in copied.items()}


def copy_cluster(cluster: Cluster) -> dict[str, Any]:
    """The same before its records are written out, which takes long for thousands: `json_parts` does."""
    return {
        "cluster_id": cluster.cluster_id,
        "term": cluster.term,
        "started_at": cluster.started_at,
        "starts": list(cluster.starts.items()),
        "workers": _records(cluster.workers.values()),
        "groups": _records(cluster.groups.values()),
        "agents": _records(cluster.agents.values()),
        "datasets": _records(cluster.datasets.values()),
        "tasks": _records(cluster.tasks.values()),
        "checkpoints": _records(cluster.checkpoints.records.values()),
        "attempts": dict(cluster.checkpoints.attempts),
        "barriers": _records(cluster.barriers.values()),
        "tokens": _records(cluster.tokens.records.values()),
        "queues": [
            {"task_id": task_id, "dataset_id": dataset_id, "queue": queue.dump()}
            for (task_id, dataset_id), queue in cluster.queues.records.items()
        ],
    }


def load_cluster(cluster: Cluster, dumped: Mapping[str, Any], guard: Guard = nullcontext) -> None:
    """Fills a fresh cluster. Each record is read inside `guard(its place)`, which decides whether one that cannot be
    read is left out by itself."""
    cluster.cluster_id, cluster.term = dumped["cluster_id"], dumped["term"]
    cluster.started_at = dumped["started_at"]
    cluster.starts.update(dumped.get("starts", ()))

    def read(name: str, cls: type[_Record]) -> list[_Record]:
        found = []
        for place, values in enumerate(dumped.get(name, ())):
            with guard(f"{name}[{place}]"):
                found.append(from_plain(cls, values))
        return found

    cluster.workers.update({item.worker_id: item for item in read("workers", Worker)})
    cluster.gone.load(cluster.workers.values())
    cluster.groups.update({item.task_id: item for item in read("groups", Group)})
    cluster.agents.update({item.agent_id: item for item in read("agents", Agent)})
    cluster.datasets.update({item.spec.dataset_id: item for item in read("datasets", Dataset)})
    cluster.tasks.update({item.task_id: item for item in read("tasks", Task)})
    cluster.checkpoints.records.update({item.id: item for item in read("checkpoints", CheckpointInfo)})
    cluster.checkpoints.attempts.update(dumped.get("attempts", {}))
    cluster.checkpoints.trim()
    cluster.tokens.records.update({item.token_id: item for item in read("tokens", TokenRecord)})
    cluster.barriers.update({item.key: item for item in read("barriers", BarrierEnd)})
    for place, item in enumerate(dumped.get("queues", ())):
        with guard(f"queues[{place}]"):
            order = queue_order(cluster.datasets[item["dataset_id"]].spec)
            cluster.queues.records[item["task_id"], item["dataset_id"]] = ShardQueue.load(order, item["queue"])


def _records(records: Iterable[Any]) -> Records:
    return Records(tuple(records))
