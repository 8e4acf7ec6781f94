"""A dataset as a record."""

from dataclasses import dataclass

from strata.cluster.events import DatasetRegistered
from strata.types.datasets import DataFile, DatasetSpec
from strata.types.plain import shared

__all__ = ["Dataset", "registered_dataset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What was registered, and when."""

    spec: DatasetSpec
    registered_at: float


def registered_dataset(event: DatasetRegistered) -> Dataset:
    pairs = zip(event.file_paths, event.file_samples, strict=True)
    files = tuple(DataFile(path=path, num_samples=num_samples) for path, num_samples in pairs)
    return Dataset(spec=DatasetSpec(**shared(DatasetSpec, event), files=files), registered_at=event.at)
