"""Strata's batches as global JAX arrays: every process reads its own part, `jax` sees one array over all of them.

The state is that of the Loader: plain JSON, to be saved beside an Orbax checkpoint.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, Unpack

import numpy as np

from strata.data import Columns, Loader, Manifest
from strata.data.config import LoaderOptions
from strata.errors import InvalidArgument, MissingExtra

try:
    import jax
except ImportError as error:
    raise MissingExtra("jax", "jax") from error

__all__ = ["global_batches", "process_loader", "to_global"]


def process_loader(
    dataset: str | PathLike[str] | Sequence[str] | Manifest, batch_size: int, **options: Unpack[LoaderOptions]
) -> Loader:
    """A Loader of this process's slice, by `jax.process_index()`. `batch_size` is per process.

    Equal slices are what a sharded array needs, so what does not fill a global batch is padded unless `tail` says
    "drop"; the loader's stats count either.
    """
    if options.get("tail", "pad") == "ragged":
        raise InvalidArgument("tail='ragged' gives processes slices of unequal length", hint="Use 'pad' or 'drop'.")
    given: LoaderOptions = {
        "tail": "pad",
        **options,
        "rank": jax.process_index(),
        "world_size": jax.process_count(),
        "worker_count": jax.process_count(),
    }
    loader = Loader(dataset, batch_size, **given)
    if loader.order.spec.num_lanes % jax.process_count():
        raise InvalidArgument(
            f"{loader.order.spec.num_lanes} lanes cannot be dealt evenly to {jax.process_count()} processes",
            hint="Choose num_lanes as a multiple of the processes that divides batch_size × processes.",
        )
    return loader


def to_global(batch: Columns, sharding: Any) -> dict[str, Any]:
    """The numeric columns of a process's slice as global arrays under `sharding`, rows first. Texts, bytes and ragged
    rows cannot be on a device: name the columns to read with `columns=`."""
    kept = {name: values for name, values in batch.items() if values.dtype.kind in "biuf"}
    if left_out := sorted(set(batch) - set(kept)):
        raise InvalidArgument(f"columns {left_out} are no numbers", hint="Leave them out with columns=[…].")
    return {
        name: jax.make_array_from_process_local_data(sharding, np.ascontiguousarray(values))
        for name, values in kept.items()
    }


def global_batches(loader: Loader, sharding: Any) -> Iterator[dict[str, Any]]:
    """The rest of the loader's epoch as global arrays. `loader.state_dict()` stays the position."""
    for batch in loader:
        yield to_global(batch, sharding)
