"""What happened: the durable, numbered facts of a cluster. The coordinator journals them before it answers; the
observatory follows them to the same state. An event never changes its meaning; new needs get new kinds or new fields.
"""

import json
from dataclasses import fields

from strata.cluster.events.barriers import BarrierBroke, BarrierReleased
from strata.cluster.events.base import Event
from strata.cluster.events.checkpoints import (
    CheckpointAborted,
    CheckpointBegun,
    CheckpointCommitted,
    CheckpointPrepared,
    CheckpointRemoved,
    CheckpointVerified,
    CheckpointVoted,
)
from strata.cluster.events.datasets import DatasetAttached, DatasetRegistered, ReadingAnnounced, ShardsRebalanced
from strata.cluster.events.members import (
    AgentDraining,
    AgentJoined,
    AgentLost,
    ClusterStarted,
    MembersLost,
    WorkerJoined,
)
from strata.cluster.events.queues import (
    QueueCommitted,
    QueueEnded,
    QueueLeased,
    QueueOpened,
    QueueRestored,
    QueueStaged,
)
from strata.cluster.events.tasks import TaskChanged, TaskSubmitted
from strata.cluster.events.tokens import TokenMade, TokenRevoked
from strata.types.plain import from_plain, to_plain

__all__ = [
    "EVENT_KINDS",
    "AgentDraining",
    "AgentJoined",
    "AgentLost",
    "BarrierBroke",
    "BarrierReleased",
    "CheckpointAborted",
    "CheckpointBegun",
    "CheckpointCommitted",
    "CheckpointPrepared",
    "CheckpointRemoved",
    "CheckpointVerified",
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
    "TokenMade",
    "TokenRevoked",
    "WorkerJoined",
    "decode_event",
    "encode_event",
]


EVENT_KINDS: dict[str, type[Event]] = {cls.__name__: cls for cls in Event.__subclasses__()}


def encode_event(event: Event) -> bytes:
    """The body as JSON; the kind travels beside it."""
    body = {item.name: getattr(event, item.name) for item in fields(event)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False, default=to_plain).encode()


def decode_event(kind: str, body: bytes) -> Event:
    """The inverse. Raises KeyError for a kind that this version does not know; unknown fields are passed over."""
    return from_plain(EVENT_KINDS[kind], json.loads(body))
