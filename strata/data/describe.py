"""From files to the record that is registered, and from a range of sample numbers back to rows.

What plain clients need: they are given shards as ranges of samples, whatever files and blocks those lie in.
"""

from collections.abc import Sequence

import numpy as np

from strata.data.blocks import INDEX, BlockSource
from strata.data.manifest import Manifest, build_manifest
from strata.data.table.columns import Columns, join, take
from strata.errors import InvalidArgument
from strata.types.datasets import DataFile, DatasetSpec

__all__ = ["describe_dataset", "read_range"]

# A dataset that nobody cut gets about this many shards: enough to share out evenly, few enough to look at.
_SHARDS = 256


def describe_dataset(
    dataset_id: str,
    path: str,
    format: str | None = None,  # noqa: A002  # the word of the contract
    *,
    shard_size: int | None = None,
) -> DatasetSpec:
    """Counts the samples of each file (from footers and headers where the format has them).

    `shuffle`, `seed` and the rest are the caller's: `dataclasses.replace` puts them in.
    """
    manifest = build_manifest(path, format)
    total = manifest.num_samples
    return DatasetSpec(
        dataset_id=dataset_id,
        path=path,
        format=manifest.format,
        total_samples=total,
        shard_size=shard_size or max(1, -(-total // _SHARDS)),
        files=tuple(
            DataFile(path=ref.uri, num_samples=index.num_rows)
            for ref, index in zip(manifest.files, manifest.indexes, strict=True)
        ),
    )


def read_range(manifest: Manifest, start: int, stop: int, columns: Sequence[str] | None = None) -> Columns:
    """Samples start…stop-1 in the order of the files: what a ShardAssignment names. Reads the blocks they lie in."""
    if not 0 <= start <= stop <= manifest.num_samples:
        raise InvalidArgument(f"samples {start} to {stop} are outside 0…{manifest.num_samples}")
    source = BlockSource(manifest, columns)
    parts = []
    for shard in manifest.blocks_between(start, max(stop, start + 1)):
        block = source.read(shard).columns
        numbers = block.pop(INDEX)
        first, last = np.searchsorted(numbers, [start, stop])
        parts.append(take(block, slice(int(first), int(last))))
    return join(parts)
