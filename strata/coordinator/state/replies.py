"""What the state answers to a command. Plain records: the transport turns them into messages."""

from dataclasses import dataclass
from typing import NamedTuple

from strata.coordinator.state.outcomes import Outcome
from strata.types.barriers import BarrierKey
from strata.types.checkpoints import CheckpointInfo
from strata.types.datasets import ShardAssignment

__all__ = ["BarrierReply", "JoinReply", "RecoverReply", "ShardsReply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReply:
    """A worker's place in its group."""

    worker_id: str
    rank: int
    world_size: int
    generation: int
    incarnation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsReply:
    """A worker's shards of one dataset and epoch."""

    assignments: tuple[ShardAssignment, ...]
    generation: int
    digest: str


class BarrierReply(NamedTuple):
    """The barrier and the round arrived at, and its outcome when there is one already."""

    key: BarrierKey
    round: int
    outcome: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverReply:
    """The checkpoint and the shards with which a worker goes on."""

    checkpoint: CheckpointInfo | None
    assignments: tuple[ShardAssignment, ...]
    generation: int
