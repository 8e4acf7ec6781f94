"""Checkpoints: saving without stalling the training loop, and loading only what was checked."""

from strata.checkpoint.arrays import Sharded
from strata.checkpoint.commit import CommitCoordinator, SaveAttempt, SaveOutcome, SoloCommit, Vote
from strata.checkpoint.handle import SaveHandle
from strata.checkpoint.manager import CheckpointManager
from strata.checkpoint.restorer import Recovery
from strata.checkpoint.saver import SaveProgress
from strata.checkpoint.store_commit import StoreCommit
from strata.checkpoint.writer import AsyncCheckpointWriter, WrittenObject

__all__ = [
    "AsyncCheckpointWriter",
    "CheckpointManager",
    "CommitCoordinator",
    "Recovery",
    "SaveAttempt",
    "SaveHandle",
    "SaveOutcome",
    "SaveProgress",
    "Sharded",
    "SoloCommit",
    "StoreCommit",
    "Vote",
    "WrittenObject",
]
