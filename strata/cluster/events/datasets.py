"""Datasets: what is known of them, and how groups read them."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = ["DatasetAttached", "DatasetRegistered", "ReadingAnnounced", "ShardsRebalanced"]


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
