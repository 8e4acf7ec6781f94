"""The settings of a CheckpointManager beyond its path and retention: a record that validates itself."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from strata.clock import Clock, SystemClock
from strata.errors import InvalidConfig
from strata.storage.options import StorageOptions
from strata.types.checkpoints import CheckpointInfo

__all__ = ["CheckpointOptions", "CheckpointSettings"]

OnBusy = Literal["block", "skip", "error"]
OnError = Literal["raise", "warn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    """`on_busy` is what save_async does while the staging memory is full: wait, skip this save (result None), or
    raise Busy.

    `on_error` is what a failed background save does at the next call: raise, or only warn. `observer` is told each
    change of a save (in_progress, completed, failed) on the saving thread; `before_vote` is called there with the step,
    when its bytes are durable and nobody counts on them yet. At `scrub_mb_s` the rank that committed the newest
    checkpoint reads it back behind the training (0: never; in a task STRATA_SCRUB_MB_S). Two staging buffers let one
    save be copied while another is written; the second exists only if that happens, and `memory_budget_bytes` bounds
    both together.
    """

    rank: int = 0
    world_size: int = 1
    worker_id: str | None = None
    task_id: str | None = None
    on_busy: OnBusy = "block"
    on_error: OnError = "raise"
    verify_on_load: bool = True
    memory_budget_bytes: int | None = None
    staging_buffers: int = 2
    deadline_s: float = 600.0
    scrub_mb_s: float = 0.0
    storage: StorageOptions | None = None
    observer: Callable[[CheckpointInfo], None] | None = None
    before_vote: Callable[[int], None] | None = None
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise InvalidConfig(
                f"rank is {self.rank}; with world_size {self.world_size} it must be 0 or more and below"
            )
        if self.on_busy not in ("block", "skip", "error"):
            raise InvalidConfig(f"on_busy is {self.on_busy!r}; allowed are block, skip and error")
        if self.on_error not in ("raise", "warn"):
            raise InvalidConfig(f"on_error is {self.on_error!r}; allowed are raise and warn")
        if self.memory_budget_bytes is not None and self.memory_budget_bytes < 1:
            raise InvalidConfig(f"memory_budget_bytes is {self.memory_budget_bytes}; it must be above 0")
        if not 1 <= self.staging_buffers <= 16:
            raise InvalidConfig(f"staging_buffers is {self.staging_buffers}; allowed are 1 to 16")
        if not self.deadline_s > 0:
            raise InvalidConfig(f"deadline_s is {self.deadline_s}; it must be above 0")
        if not 0 <= self.scrub_mb_s < math.inf:
            raise InvalidConfig(f"scrub_mb_s is {self.scrub_mb_s}; it must be 0 or more")


class CheckpointOptions(TypedDict, total=False):
    """The same settings as keyword arguments of CheckpointManager."""

    rank: int
    world_size: int
    worker_id: str | None
    task_id: str | None
    on_busy: OnBusy
    on_error: OnError
    verify_on_load: bool
    memory_budget_bytes: int | None
    staging_buffers: int
    deadline_s: float
    scrub_mb_s: float
    storage: StorageOptions | None
    observer: Callable[[CheckpointInfo], None] | None
    before_vote: Callable[[int], None] | None
    clock: Clock
