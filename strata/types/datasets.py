"""Records about data: what a dataset is, and which part of it a worker reads. They check themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from strata.errors import InvalidArgument
from strata.types.names import check_name

__all__ = ["MAX_SHARDS", "DataFile", "DatasetSpec", "ShardAssignment"]

# 16 bytes of table per shard: the largest dataset costs the coordinator 160 MB, and a typing error cannot cost more.
MAX_SHARDS = 10_000_000
_MAX_SAMPLES = 1 << 62
_MAX_PATH = 4096
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file of a dataset and how many samples it holds, in the order in which the samples are numbered."""

    path: str
    num_samples: int

    def __post_init__(self) -> None:
        if not self.path or len(self.path) > _MAX_PATH:
            raise InvalidArgument(f"file path must have 1 to {_MAX_PATH} characters, not {len(self.path)}")
        if self.num_samples < 0:
            raise InvalidArgument(f"file {self.path!r} cannot hold {self.num_samples} samples")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec:
    """A registered dataset: `total_samples` cut into shards of `shard_size` (the last one may be shorter).

    `files` is optional: with it, an assignment names only the files its range touches, without it `path` as given.
    """

    dataset_id: str
    path: str = ""
    format: str = ""
    total_samples: int
    shard_size: int
    shuffle: bool = True
    seed: int = 0
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[DataFile, ...] = ()

    def __post_init__(self) -> None:
        check_name("dataset", self.dataset_id)
        named = f"dataset {self.dataset_id!r}"
        for name, text, limit in (("path", self.path, _MAX_PATH), ("format", self.format, 64)):
            if len(text) > limit:
                raise InvalidArgument(f"{name} of {named} has {len(text)} characters, at most {limit}")
        if not 1 <= self.total_samples <= _MAX_SAMPLES:
            raise InvalidArgument(f"total_samples of {named} must be at least 1: {self.total_samples}")
        if self.shard_size < 1:
            raise InvalidArgument(f"shard_size of {named} must be at least 1: {self.shard_size}")
        if not -_INT64 <= self.seed < _INT64:
            raise InvalidArgument(f"seed of {named} must fit 64 bits: {self.seed}")
        if self.num_shards > MAX_SHARDS:
            raise InvalidArgument(
                f"{named} would have {self.num_shards} shards, at most {MAX_SHARDS} are allowed",
                hint=f"Use a shard_size of at least {-(-self.total_samples // MAX_SHARDS)}.",
            )
        counted = sum(file.num_samples for file in self.files)
        if self.files and counted != self.total_samples:
            raise InvalidArgument(f"the files of {named} hold {counted} samples, not {self.total_samples}")

    @property
    def num_shards(self) -> int:
        return -(-self.total_samples // self.shard_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardAssignment:
    """One shard for one worker: samples `start_index` up to, not including, `end_index` of the dataset."""

    dataset_id: str
    shard_id: int
    total_shards: int
    start_index: int
    end_index: int
    file_paths: tuple[str, ...] = ()
    epoch: int = 0

    @property
    def num_samples(self) -> int:
        return self.end_index - self.start_index
