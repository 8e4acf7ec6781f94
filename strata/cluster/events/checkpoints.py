"""Checkpoints: attempts to save a step, and what became of them."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = [
    "CheckpointAborted",
    "CheckpointBegun",
    "CheckpointCommitted",
    "CheckpointPrepared",
    "CheckpointRemoved",
    "CheckpointVerified",
    "CheckpointVoted",
]


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
class CheckpointVerified(Event):
    """Every byte of a complete checkpoint was read back. `damage` says what is not as it was written; empty: all is."""

    checkpoint_id: str
    task_id: str
    step: int
    damage: str
    at: float
