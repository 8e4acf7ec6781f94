"""Checkpoints that never stall training, never lie about what is saved, and never lose what they said is."""

from strata.checkpoint.arrays import Sharded
from strata.checkpoint.commit import Attempt, CommitCoordinator, Decision, SoloCommit, Vote
from strata.checkpoint.handle import SaveHandle
from strata.checkpoint.manager import CheckpointManager, Recovery
from strata.checkpoint.saver import SaveProgress
from strata.checkpoint.store_commit import StoreCommit
from strata.checkpoint.writer import AsyncCheckpointWriter, WrittenObject

__all__ = [
    "AsyncCheckpointWriter",
    "Attempt",
    "CheckpointManager",
    "CommitCoordinator",
    "Decision",
    "Recovery",
    "SaveHandle",
    "SaveProgress",
    "Sharded",
    "SoloCommit",
    "StoreCommit",
    "Vote",
    "WrittenObject",
]
