"""peek: the samples of any place of any epoch, without a loader and without reading what lies before."""

from collections.abc import Sequence
from typing import Unpack

from strata.data.blocks import BlockSource
from strata.data.config import LoaderOptions
from strata.data.loader import Loader
from strata.data.manifest import Manifest
from strata.data.preview import MAX_ROWS, Preview, preview_rows
from strata.errors import InvalidArgument

__all__ = ["peek"]


def peek(
    dataset: str | Sequence[str] | Manifest | Loader,
    n: int = 8,
    epoch: int = 0,
    position: int = 0,
    **options: Unpack[LoaderOptions],
) -> Preview:
    """The first `n` samples of the global batch at `position` (in samples) of `epoch`, made small.

    Takes a running loader, to see its order, or a dataset with the options of one. Reads at most n blocks.
    """
    if not 1 <= n <= MAX_ROWS or epoch < 0:
        raise InvalidArgument(f"n must be 1…{MAX_ROWS} and epoch not negative: n={n}, epoch={epoch}")
    loader = dataset if isinstance(dataset, Loader) else Loader(dataset, batch_size=64, **options)
    order = loader.order
    lanes = order.spec.num_lanes
    offset = order.offset_of(position - position % lanes if position < loader.manifest.num_samples else position)
    if not order.steps_from(offset):
        raise InvalidArgument(f"position {position} is at the end: the epoch has {loader.manifest.num_samples} samples")
    refs = order.batch_at(epoch, offset)
    blocks = BlockSource(loader.manifest, loader.config.columns)
    rows = blocks.rows(refs.shards[:n], refs.rows[:n])
    return preview_rows(rows, n, loader.manifest, epoch, order.position_of(offset))
