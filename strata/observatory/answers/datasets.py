"""Datasets and their shards as REST shows them."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Dataset", "DatasetQueue", "DatasetRegistered", "Shard", "ShardReader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetQueue:
    """A dataset that one task reads in queue mode; `workers` counts open leases by worker."""

    task_id: str | None
    epoch: int
    num_samples: int
    num_shards: int
    committed_samples: int
    leased_samples: int
    remaining_samples: int
    leased_shards: int
    read_shards: int
    workers: dict[str, int]
    finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A registered dataset; `epoch` and `progress` (percent) are of those who read it now."""

    id: str
    name: str
    total_samples: int
    shard_size: int
    shard_count: int
    format: str
    shuffle: bool
    seed: int
    path: str
    registered_at: int | None
    registered_at_ms: int | None
    epoch: int | None
    progress: float | None
    queues: list[DatasetQueue]
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRegistered:
    """A registration, with the counts that were read from the files."""

    success: bool
    id: str
    dataset_id: str
    total_shards: int
    total_samples: int
    shard_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReader:
    """Samples of a shard that one worker reads."""

    worker_id: str
    rank: int | None
    alive: bool
    start_index: int
    end_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A shard and who reads it. `worker_id` is the worker that reads most of it; in queue mode it took the shard last.
    `mode` says who decided: the group's loaders (lanes), a queue, or the coordinator (dealt); null: nobody reads it."""

    shard_id: int
    worker_id: str | None
    rank: int | None
    alive: bool | None
    start_index: int
    end_index: int
    progress: float | None
    epoch: int | None
    readers: list[ShardReader]
    task_id: str | None
    mode: Literal["lanes", "queue", "dealt"] | None
