"""Who hears what the loaders of this process read: the worker runtime behind a Protocol, or nobody."""

from collections.abc import Callable
from typing import Protocol

from strata.ambient import ambient
from strata.data.preview import Preview
from strata.sharding.lanes import LaneLayout

__all__ = ["ReadWatcher", "read_watcher"]


class ReadWatcher(Protocol):
    """Implemented above this layer. Neither call may raise; `handed_out` comes with every batch and must be cheap."""

    def begins(self, dataset_id: str, layout: LaneLayout, lanes: tuple[int, ...]) -> None:
        """A loader reads these lanes of a registered dataset from now on. May block for a moment."""
        ...

    def handed_out(self, dataset_id: str, num_read: int, look: Callable[[int], Preview]) -> None:
        """A batch of a registered dataset was handed out: `num_read` samples of the epoch are this worker's so far,
        `look(n)` makes a preview of the batch's first n."""
        ...


def read_watcher() -> ReadWatcher | None:
    """Whom loaders of this process tell."""
    return None if ambient.watcher is None else ambient.watcher()
