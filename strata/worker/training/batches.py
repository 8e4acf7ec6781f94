"""The batches of a loop: those of a loader, epoch after epoch, from where it was."""

from collections.abc import Iterator, Mapping
from typing import Any

from strata.checkpoint.objects import is_stateful
from strata.data import Loader
from strata.errors import InvalidArgument

__all__ = ["Batches"]


class Batches:
    """A loader and how many epochs of it are done: a part of the state. Any loader will do that can be iterated once
    per epoch and says by `state_dict` where it is."""

    def __init__(self, loader: Any, world_size: int) -> None:
        if not is_stateful(loader):
            kind = f"{type(loader).__module__}.{type(loader).__qualname__}"
            raise InvalidArgument(
                f"loader is a {kind} without state_dict() and load_state_dict(): where it was cannot be saved",
                hint="Use strata.data.Loader, torchdata's StatefulDataLoader, or give your own loader these methods.",
            )
        self._loader = loader
        self._world_size = world_size
        self.epoch = 0

    def until(self, epochs: int | None) -> Iterator[Any]:
        """Until so many epochs are done; None: for ever. Raises InvalidArgument when the loader has nothing at all."""
        empty = 0
        while epochs is None or self.epoch < epochs:
            sampler: Any = getattr(self._loader, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(self.epoch)  # torch's DistributedSampler: else each epoch has the first one's order
            empty += 1
            for batch in self._loader:
                empty = 0
                yield batch
            # A fork may leave out a whole epoch: the loader then has passed over it.
            self.epoch = max(self.epoch + 1, self._loader.epoch) if isinstance(self._loader, Loader) else self.epoch + 1
            if empty == 2:  # the first may be the end of an epoch that was saved there
                raise InvalidArgument("the loader gives no batch in a whole epoch", hint="Is its dataset empty?")

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "ranks": self._world_size, "loader": self._loader.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["ranks"] != self._world_size and not isinstance(self._loader, Loader):
            raise InvalidArgument(
                f"{state['ranks']} ranks saved where their {type(self._loader).__qualname__}s were, now there are "
                f"{self._world_size}",
                hint="Resume with as many ranks, or read with strata.data.Loader, whose position is that of all ranks.",
            )
        self.epoch = state["epoch"]
        self._loader.load_state_dict(state["loader"])
