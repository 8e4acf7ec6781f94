"""Dicts, lists and arrays as parts of a training state: saved as they are, filled again in place."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.checkpoint.arrays import array_source
from strata.checkpoint.objects import is_stateful
from strata.errors import InvalidArgument
from strata.worker.elastic.keepers import Stateful

__all__ = ["ArrayTree", "part_of"]


class ArrayTree:
    """A nest of dicts and lists with arrays in it, or one array. `value` is the newest: a load changes dicts, lists and
    NumPy arrays in place, so that the script's own names for them stay true, and replaces what cannot be changed."""

    def __init__(self, value: Any, name: str = "") -> None:
        self.value = self._given = value
        self._name = name

    def state_dict(self) -> dict[str, Any]:
        return {"tree": self.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        new = state["tree"]
        if self.value is self._given and isinstance(new, np.ndarray) and _differs(self.value, new):
            # The script trains the array that it gave: another in its place would be saved, and never change.
            raise InvalidArgument(
                f"{self._name} has shape {self.value.shape} ({self.value.dtype}), and {new.shape} ({new.dtype}) in the "
                "checkpoint",
                hint="Go on with the same model, or choose another name or path. An array that grows stands in a dict.",
            )
        self.value = _filled(self.value, new)


def _filled(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - new.keys():
            del old[key]
        for key, item in new.items():
            old[key] = _filled(old.get(key), item)
        return old
    if isinstance(old, list) and isinstance(new, list):
        old[:] = [_filled(before, item) for before, item in zip(old, new, strict=True)] if len(old) == len(new) else new
        return old
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.flags.writeable and not _differs(old, new):
        np.copyto(old, new)
        return old
    return new


def _differs(old: Any, new: NDArray[Any]) -> bool:
    return isinstance(old, np.ndarray) and (old.shape, old.dtype) != (new.shape, new.dtype)


def part_of(name: str, given: Any) -> Stateful:
    """What was given to the loop under this name as a part of its state. Raises InvalidArgument that names what is
    none."""
    if is_stateful(given):
        part: Stateful = given
        return part
    if isinstance(given, dict | list) or (not isinstance(given, bytes) and array_source(name, given) is not None):
        return ArrayTree(given, name)
    raise InvalidArgument(
        f"{name} is a {type(given).__module__}.{type(given).__qualname__}, which is no part of a training state",
        hint="Give models, optimizers, schedulers, scalers, arrays, dicts or lists of arrays, or an object of yours "
        "with state_dict() and load_state_dict().",
    )
