"""How the parts of a training state are kept between two commits, so that a rank can go back to the last one."""

import copy
import random
from typing import Any, Protocol, runtime_checkable

import numpy as np

from strata.checkpoint.objects import is_stateful
from strata.checkpoint.slices import Block
from strata.errors import InvalidArgument

__all__ = ["CopyKeeper", "Keeper", "LiveKeeper", "Placed", "RandomKeeper", "RandomState", "Stateful"]


class Stateful(Protocol):
    """A part of the state: a model, an optimizer, a Loader, a scheduler."""

    def state_dict(self) -> Any: ...
    def load_state_dict(self, state: Any, /) -> Any: ...


@runtime_checkable
class Placed(Protocol):
    """A part whose arrays are spread over the ranks: it knows which block of each this process has."""

    def block_of(self, array: str, shape: tuple[int, ...]) -> Block | None: ...


class Keeper(Protocol):
    """One part of the state. `clean`: what it has in memory leads back to the last commit."""

    part: Any

    @property
    def clean(self) -> bool: ...
    def commit(self) -> None: ...
    def rewind(self) -> None: ...
    def state(self) -> Any:
        """As of the last commit; it must not be changed."""
        ...

    def load(self, state: Any) -> None: ...


class CopyKeeper:
    """Any part with `state_dict` and `load_state_dict`: its state is copied at every commit."""

    clean = True

    def __init__(self, name: str, part: Stateful) -> None:
        if not is_stateful(part):
            raise InvalidArgument(
                f"{name} is a {type(part).__qualname__} without state_dict() and load_state_dict()",
                hint="Give models, optimizers, Loaders, schedulers, or an object of yours with these two methods.",
            )
        self.part = part
        self._state: Any = None

    def commit(self) -> None:
        self._state = copy.deepcopy(self.part.state_dict())

    def rewind(self) -> None:
        self.part.load_state_dict(copy.deepcopy(self._state))

    def state(self) -> Any:
        return self._state

    def load(self, state: Any) -> None:
        self.part.load_state_dict(state)


class LiveKeeper(CopyKeeper):
    """A part in a process that never goes back to its last commit: a restart does. Nothing is copied."""

    def commit(self) -> None: ...
    def rewind(self) -> None: ...

    def state(self) -> Any:
        return self.part.state_dict()


class RandomState(Protocol):
    """Generators of random numbers: each rank's own, so they are never taken from a peer."""

    def get(self) -> Any: ...
    def set(self, state: Any) -> None: ...
    def seed(self, number: int) -> None: ...


class RandomKeeper:
    """Python's and NumPy's global generators."""

    def get(self) -> Any:
        return {"python": random.getstate(), "numpy": np.random.get_state()}

    def set(self, state: Any) -> None:
        version, words, gauss = state["python"]
        random.setstate((version, tuple(words), gauss))
        np.random.set_state(state["numpy"])

    def seed(self, number: int) -> None:
        random.seed(number)
        np.random.seed(number % 2**32)
