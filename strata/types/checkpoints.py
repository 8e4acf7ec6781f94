"""One checkpoint as everybody sees it: the SDK, the coordinator's catalog, REST and the dashboard."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from strata.errors import InvalidArgument
from strata.types.names import check_name

__all__ = ["CheckpointInfo", "CheckpointStatus", "checkpoint_id_of", "throughput_of"]


def throughput_of(size_bytes: int, duration_s: float | None) -> float | None:
    """MB/s from the call to the commit; None where nobody took the time, or the clock was too coarse to tell."""
    rate = size_bytes / duration_s / 1e6 if duration_s else None
    return rate if rate is not None and math.isfinite(rate) else None


def checkpoint_id_of(step: int, attempt: str) -> str:
    """The one name of a checkpoint, for the store, the coordinator, REST and the CLI. Unique per attempt, so that a
    failed attempt and its successful retry are two records."""
    return f"step-{step:012d}.{attempt}"


class CheckpointStatus(StrEnum):
    """Where a checkpoint stands. Only COMPLETED ones can be loaded; FAILED and REMOVED ones say why in `reason`."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A checkpoint's public record; what is not known is None, never 0.

    `path` is the folder (or URI) of the step, `created_at` Unix seconds, `duration_s` the time from the call to the
    commit, `verified` True or False once its bytes were checked against their hashes, last at `verified_at`; when they
    are damaged, `reason` says where.
    """

    id: str
    step: int
    epoch: int
    path: str
    size_bytes: int
    created_at: float
    status: CheckpointStatus
    worker_id: str | None = None
    task_id: str | None = None
    duration_s: float | None = None
    verified: bool | None = None
    verified_at: float | None = None
    pinned: bool = False
    reason: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("checkpoint id", self.id)
        for name, value in (("step", self.step), ("epoch", self.epoch), ("size_bytes", self.size_bytes)):
            if value < 0:
                raise InvalidArgument(f"checkpoint {self.id}: {name} is {value}, it must be 0 or more")
        for name, number in (("created_at", self.created_at), ("duration_s", self.duration_s)):
            if number is not None and not (math.isfinite(number) and number >= 0):
                raise InvalidArgument(f"checkpoint {self.id}: {name} is {number}, it must be finite and 0 or more")
        object.__setattr__(self, "status", CheckpointStatus(self.status))

    def checked(self, damage: str, at: float) -> "CheckpointInfo":
        """After a look at every byte; `damage` says what is not as it was written, empty: all is."""
        return replace(self, verified=not damage, verified_at=at, reason=damage)

    @property
    def recovery_order(self) -> tuple[bool, int, float]:
        """The sort key of checkpoints for a recovery, which takes the largest: the newest step that is not known to be
        damaged."""
        return self.verified is not False, self.step, self.created_at

    @property
    def throughput(self) -> float | None:
        return throughput_of(self.size_bytes, self.duration_s)
