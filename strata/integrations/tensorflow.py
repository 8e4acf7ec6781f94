"""Strata's data as a tf.data.Dataset: whole batches of tensors in the order of the Loader, with a position to save.

tf.data reads ahead, so the position is counted in batches that were taken, never in batches that were read.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from strata.data import Columns, Loader, Manifest, PlanSource
from strata.data.config import LoaderOptions
from strata.errors import InvalidArgument, MissingExtra

try:
    import tensorflow as tf
except ImportError as error:
    raise MissingExtra("tensorflow", "tensorflow") from error

__all__ = ["StrataSource", "to_arrays"]


def to_arrays(batch: Columns) -> dict[str, NDArray[Any]]:
    """A batch as tf.data takes it: numbers as they are, texts and bytes as objects; ragged rows are refused."""
    return {name: _checked(name, values) for name, values in batch.items()}


def _checked(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype != object or all(isinstance(value, str | bytes) for value in values):
        return values
    raise InvalidArgument(
        f"column {name!r} holds {type(values[0]).__name__} of differing shape, which is no tensor",
        hint="Leave it out with columns=…, or pad it in a transform=….",
    )


class StrataSource:
    """`for batch in StrataSource("data/*.parquet", 32): …` gives one epoch of dicts of tensors, then the next.

    `dataset()` is the same as a tf.data.Dataset, for `map`, `prefetch` and `model.fit`. Not thread-safe.
    """

    def __init__(
        self,
        dataset: str | PathLike[str] | Sequence[str] | Manifest,
        batch_size: int,
        *,
        plan: PlanSource | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        self._loader = Loader(dataset, batch_size, plan=plan, **options)
        self._loader.announce()  # once: its twins take it over
        self._num_taken = 0
        self._signature = _signature_of(self._loader)

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return len(self._loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rest of the epoch; the position follows every batch that is taken."""
        begin = self._loader.state_at(self._num_taken)
        self.load_state_dict(begin)
        for batch in self._made(lambda: self._batches(begin)).prefetch(tf.data.AUTOTUNE):
            self._num_taken += 1
            yield batch
        self.load_state_dict(self._loader.state_of(int(begin["epoch"]) + 1, 0))

    def dataset(self) -> Any:
        """A tf.data.Dataset. Each iteration of it is one epoch, the first from the position on. What was taken of one
        is not known here: save `state_at(n)` after n batches, or iterate over the source itself."""

        def epoch() -> Iterator[dict[str, NDArray[Any]]]:
            begin = self.state_dict()
            yield from self._batches(begin)
            self.load_state_dict(self._loader.state_of(int(begin["epoch"]) + 1, 0))

        return self._made(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was taken from the source: plain JSON, free of ranks."""
        return self.state_at(self._num_taken)

    def state_at(self, num_batches: int) -> dict[str, Any]:
        """The state after this many batches from where this epoch was begun or restored."""
        return self._loader.state_at(num_batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a saved position, also one of Loader or of the torch dataset; the next iteration begins there."""
        self._loader.load_state_dict(state)
        self._num_taken = 0

    def set_epoch(self, epoch: int) -> None:
        """To the start of an epoch."""
        self._loader.set_epoch(epoch)
        self._num_taken = 0

    def _batches(self, begin: Mapping[str, Any]) -> Iterator[dict[str, NDArray[Any]]]:
        """On a thread of tf.data, with a loader of its own: a broken-off iteration may still be reading ahead."""
        loader = self._loader.twin()
        loader.load_state_dict(begin)
        try:
            for batch in loader:
                yield to_arrays(batch)
        finally:
            loader.close()

    def _made(self, generator: Any) -> Any:
        return tf.data.Dataset.from_generator(generator, output_signature=self._signature)


def _signature_of(loader: Loader) -> dict[str, Any]:
    """From the first batch of the epoch, which is read for it. Lengths of lists may change from batch to batch."""
    looker = loader.twin()
    batch = next(iter(looker), None)
    looker.close()
    if batch is None:
        raise InvalidArgument("no batch is left to learn the columns' types from", hint="Begin a new epoch first.")
    return {name: _spec_of(values) for name, values in to_arrays(batch).items()}


def _spec_of(values: NDArray[Any]) -> Any:
    text = values.dtype == object or values.dtype.kind in "US"
    kind = tf.string if text else tf.as_dtype(np.dtype(values.dtype))
    return tf.TensorSpec(shape=[None] * values.ndim, dtype=kind)
