"""DatasetRegistry: makes data known to the cluster under an id. Counts what the caller does not say."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from strata.client.channel import Channel, dial
from strata.client.datasets import DatasetsClient
from strata.config import load_settings
from strata.data.describe import describe_dataset
from strata.errors import InvalidArgument
from strata.trust.access import find_access
from strata.types.datasets import DatasetSpec

__all__ = ["DatasetRegistry"]

_SHARDS = 64


class DatasetRegistry:
    """`registry.register("ds-001", path="data/*.parquet", format="parquet")`."""

    def __init__(self, address: str | None = None, *, timeout_s: float = 10.0) -> None:
        settings = load_settings()
        self._channel = Channel(
            dial(address or settings.coordinator_addr), access=find_access(settings), patience_s=timeout_s
        )
        self._client = DatasetsClient(self._channel)

    def register(
        self,
        dataset_id: str,
        *,
        path: str = "",
        format: str = "",  # noqa: A002  # the word of the contract
        total_samples: int | None = None,
        shard_size: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        metadata: Mapping[str, str] | None = None,
    ) -> DatasetSpec:
        """Registers and returns the record. The same registration again changes nothing; another one under the same id
        is refused. Files are counted unless `total_samples` says how many there are."""
        if total_samples is None:
            if not path:
                raise InvalidArgument(f"dataset {dataset_id!r} needs a path, or total_samples")
            spec = describe_dataset(dataset_id, path, format or None, shard_size=shard_size)
        else:
            spec = DatasetSpec(
                dataset_id=dataset_id,
                path=path,
                format=format,
                total_samples=total_samples,
                shard_size=shard_size or max(1, -(-total_samples // _SHARDS)),
            )
        spec = replace(spec, shuffle=shuffle, seed=seed, metadata=dict(metadata or {}))
        self._client.register(spec)
        return spec

    async def register_async(self, dataset_id: str, *, path: str, format: str = "", seed: int = 0) -> DatasetSpec:  # noqa: A002
        return await asyncio.to_thread(self.register, dataset_id, path=path, format=format, seed=seed)

    def get(self, dataset_id: str) -> DatasetSpec:
        return self._client.find(dataset_id)

    def close(self) -> None:
        self._channel.close()
