"""Which lanes this process reads. The answer comes from arguments (rank and world size) or from a coordinator behind a
Protocol.
"""

from dataclasses import dataclass
from typing import Protocol

from strata.ambient import ambient
from strata.data.manifest import Manifest
from strata.errors import InvalidArgument
from strata.sharding.order import default_lanes
from strata.sharding.sticky import plan_sticky

__all__ = [
    "DatasetSource",
    "PlanSource",
    "StaticPlan",
    "choose_lanes",
    "choose_window",
    "plan_source",
]

MAX_LANES = 64
MAX_WINDOW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSource:
    """Where a registered dataset is: what a loader needs to open it."""

    path: str
    format: str
    shuffle: bool
    seed: int


class PlanSource(Protocol):
    """Implemented above this layer by whoever talks to the coordinator. Calls may block."""

    @property
    def worker_count(self) -> int:
        """The job's declared number of workers, fixed for its life: it makes the global batch."""
        ...

    def resolve(self, dataset: str) -> DatasetSource | None:
        """The registered dataset of that id, or None when there is none (then it is taken as a path)."""
        ...

    def plan(self, dataset: str, num_lanes: int) -> tuple[int, ...]:
        """The lanes that this process reads, for as long as it lives."""
        ...


class StaticPlan:
    """Rank and world size as arguments; nothing ever changes. Any world size reads the same global batches."""

    def __init__(self, rank: int = 0, world_size: int = 1, worker_count: int | None = None) -> None:
        if not 0 <= rank < world_size:
            raise InvalidArgument(f"rank {rank} is outside 0…{world_size - 1}")
        if worker_count is not None and worker_count < 1:
            raise InvalidArgument(f"worker_count must be at least 1: {worker_count}")
        self._rank = rank
        self._world_size = world_size
        self.worker_count = worker_count or world_size

    def resolve(self, dataset: str) -> DatasetSource | None:
        return None

    def plan(self, dataset: str, num_lanes: int) -> tuple[int, ...]:
        table = plan_sticky(num_lanes, [str(rank) for rank in range(self._world_size)])
        return tuple(table.units_of(str(self._rank)).tolist())


def plan_source() -> PlanSource | None:
    """Whom loaders of this process ask when they are given no ranks."""
    return None if ambient.plan is None else ambient.plan()


def choose_lanes(manifest: Manifest, global_batch: int, worker_count: int, memory_bytes: int) -> int:
    """How many lanes to cut. Many lanes mix well and allow many workers, but each holds a window in memory and cuts
    blocks at its ends. So there is at least one per worker, and at most 64, a quarter of the blocks, and what fits into
    a worker's memory."""
    fitting = memory_bytes * worker_count // max(manifest.block_bytes, 1)
    limit = max(1, min(MAX_LANES, manifest.num_blocks // 4, fitting))
    return default_lanes(global_batch, worker_count, limit)


def choose_window(manifest: Manifest, num_lanes: int, worker_count: int, memory_bytes: int) -> int:
    """How many blocks a lane shuffles together: up to 8, as many as fit the memory of a worker."""
    lanes = -(-num_lanes // worker_count)
    return max(1, min(MAX_WINDOW, memory_bytes // max(lanes * manifest.block_bytes, 1)))
