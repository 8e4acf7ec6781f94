"""What happened: the durable, numbered facts of a cluster. The coordinator journals them before it answers; the
observatory follows them to the same state. An event never changes its meaning; new needs get new kinds or new fields.
"""

import json
from dataclasses import dataclass, fields
from typing import Any

__all__ = [
    "EVENT_KINDS",
    "AgentJoined",
    "AgentLost",
    "BarrierBroke",
    "BarrierReleased",
    "CheckpointAborted",
    "CheckpointBegun",
    "CheckpointCommitted",
    "CheckpointPrepared",
    "CheckpointRemoved",
    "CheckpointVoted",
    "ClusterStarted",
    "DatasetAttached",
    "DatasetRegistered",
    "Event",
    "MembersLost",
    "QueueCommitted",
    "QueueEnded",
    "QueueLeased",
    "QueueOpened",
    "QueueRestored",
    "QueueStaged",
    "ReadingAnnounced",
    "ShardsRebalanced",
    "TaskChanged",
    "TaskSubmitted",
    "WorkerJoined",
    "decode_event",
    "encode_event",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The root of all kinds; `kind` on the wire is the class's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStarted(Event):
    """A coordinator took over: `term` counts its starts, `cluster_id` stays for the life of the data folder."""

    cluster_id: str
    term: int
    started_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJoined(Event):
    """A worker took a rank of its group, new or again; whoever held the id or the rank before is fenced."""

    worker_id: str
    task_id: str
    incarnation: str
    rank: int
    generation: int
    hostname: str
    port: int
    gpu_count: int
    memory_bytes: int
    agent_id: str
    metadata: dict[str, str]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersLost(Event):
    """Workers of one group died, or left of their own will (`left`), in one step; `reasons` says why, one by one."""

    task_id: str
    generation: int
    worker_ids: tuple[str, ...]
    reasons: tuple[str, ...]
    left: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentJoined(Event):
    """A host offers its slots."""

    agent_id: str
    incarnation: str
    hostname: str
    address: str
    slots: int
    gpu_count: int
    memory_bytes: int
    version: str
    at: float
    launcher: str = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLost(Event):
    """A host is gone: its lease ran out, or it said goodbye (`left`)."""

    agent_id: str
    reason: str
    left: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRegistered(Event):
    """A dataset is known by its id; the same registration again changes nothing."""

    dataset_id: str
    path: str
    format: str
    total_samples: int
    shard_size: int
    shuffle: bool
    seed: int
    metadata: dict[str, str]
    file_paths: tuple[str, ...]
    file_samples: tuple[int, ...]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetAttached(Event):
    """A group reads a dataset from now on: its shards are dealt to the group's members."""

    task_id: str
    dataset_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingAnnounced(Event):
    """A worker's loader reads these lanes of a dataset that `num_lanes`, `manifest` and `shuffle` cut into lanes.
    `sizes` are the samples of its blocks, deflated, in base64; empty where an earlier event gave the same cut."""

    task_id: str
    dataset_id: str
    worker_id: str
    rank: int
    incarnation: str
    manifest: str
    num_lanes: int
    shuffle: bool
    lanes: tuple[int, ...]
    sizes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsRebalanced(Event):
    """The group's shards were dealt to the holders of these ranks. Who owns what follows from the earlier events."""

    task_id: str
    generation: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointBegun(Event):
    """All `ranks` of one generation start to save one step."""

    task_id: str
    attempt: str
    checkpoint_id: str
    step: int
    epoch: int
    generation: int
    ranks: tuple[int, ...]
    storage_path: str
    deadline_s: float
    worker_id: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointVoted(Event):
    """One rank's bytes are durable."""

    attempt: str
    rank: int
    manifest_key: str
    manifest_hash: str
    size_bytes: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPrepared(Event):
    """Every vote is in: `committer` (a rank) may publish COMMIT.json."""

    attempt: str
    committer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCommitted(Event):
    """A checkpoint exists. From the two-phase path, or notified by a plain worker (empty attempt)."""

    checkpoint_id: str
    task_id: str
    attempt: str
    worker_id: str
    step: int
    epoch: int
    storage_path: str
    size_bytes: int
    type: int
    duration_s: float | None
    metadata: dict[str, str]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAborted(Event):
    """An attempt was given up; `missing` names the ranks whose bytes never became durable."""

    attempt: str
    reason: str
    missing: tuple[int, ...]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRemoved(Event):
    """Checkpoints that were complete are deleted from their store, by retention or by hand: `reason` tells."""

    task_id: str
    checkpoint_ids: tuple[str, ...]
    reason: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierReleased(Event):
    """All members arrived, in this order. `request_ids` let a late retry get the same answer."""

    task_id: str
    barrier_id: str
    step: int
    round: int
    generation: int
    worker_ids: tuple[str, ...]
    request_ids: tuple[str, ...]
    absent: tuple[str, ...]
    created_at: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierBroke(Event):
    """It will not release: members died (`missing` names exactly them), or its deadline passed (`expired`)."""

    task_id: str
    barrier_id: str
    step: int
    round: int
    generation: int
    worker_ids: tuple[str, ...]
    request_ids: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str
    expired: bool
    total: int
    created_at: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSubmitted(Event):
    """A user's job is in the queue."""

    task_id: str
    request_id: str
    name: str
    type: str
    dataset_id: str
    worker_count: int
    config_json: str
    entrypoint: tuple[str, ...]
    env: dict[str, str]
    launcher: str
    max_restarts: int
    working_dir: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanged(Event):
    """A task's status, attempt or reason changed. The rest is its course: where its ranks are, and what went wrong so
    far. An attempt is launched only after the event that names it is durable, so none is ever launched twice."""

    task_id: str
    status: str
    attempt: int
    reason: str
    at: float
    placement: tuple[str, ...] = ()
    master_addr: str = ""
    master_port: int = 0
    gang_port: int = 0
    failures: int = 0
    preemptions: int = 0
    stalled: int = 0
    losses: int = 0
    losses_since: float = 0.0
    step: int = -1
    retry_at: float = 0.0
    stuck: bool = False
    stop_at: int = -1
    hurry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOpened(Event):
    """A group lends out a dataset's shards of this epoch; every sample of the one before is committed."""

    task_id: str
    dataset_id: str
    epoch: int
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLeased(Event):
    """The shard at `place` of the epoch's order is lent to a worker, until it is committed or the worker is gone."""

    task_id: str
    dataset_id: str
    worker_id: str
    place: int
    lease_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEnded(Event):
    """The holders have read these leases to their end; what they read is not committed yet."""

    task_id: str
    dataset_id: str
    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCommitted(Event):
    """A worker's rows count: of each lease those before the row beside it."""

    task_id: str
    dataset_id: str
    worker_id: str
    lease_ids: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStaged(Event):
    """A worker's rows will count when the checkpoint of `step` is committed, which they are part of."""

    task_id: str
    dataset_id: str
    worker_id: str
    step: int
    fence: int
    lease_ids: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRestored(Event):
    """The group went back to the checkpoint of `step` (-1 = to the start): later commits are undone, leases void."""

    task_id: str
    dataset_id: str
    step: int
    fence: int


EVENT_KINDS: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__subclasses__()}


def encode_event(event: Event) -> bytes:
    """The body as JSON; the kind travels beside it."""
    body = {item.name: getattr(event, item.name) for item in fields(event)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def decode_event(kind: str, body: bytes) -> Event:
    """The inverse. Raises KeyError for a kind that this version does not know."""
    cls = EVENT_KINDS[kind]
    values: dict[str, Any] = json.loads(body)
    return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
