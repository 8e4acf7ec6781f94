"""A dataset as a record."""

from dataclasses import dataclass

from strata.cluster.events import DatasetRegistered
from strata.types.datasets import DataFile, DatasetSpec

__all__ = ["Dataset", "registered_dataset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What was registered, and when."""

    spec: DatasetSpec
    registered_at: float


def registered_dataset(event: DatasetRegistered) -> Dataset:
    files = zip(event.file_paths, event.file_samples, strict=True)
    spec = DatasetSpec(
        dataset_id=event.dataset_id,
        path=event.path,
        format=event.format,
        total_samples=event.total_samples,
        shard_size=event.shard_size,
        shuffle=event.shuffle,
        seed=event.seed,
        metadata=event.metadata,
        files=tuple(DataFile(path=path, num_samples=num_samples) for path, num_samples in files),
    )
    return Dataset(spec=spec, registered_at=event.at)
