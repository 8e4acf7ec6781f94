"""Dicts, lists and arrays as parts of a training state: saved as they are, filled again in place."""

import operator
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.checkpoint.arrays import array_source
from strata.checkpoint.objects import is_stateful
from strata.errors import InvalidArgument
from strata.worker.elastic.keepers import Stateful

__all__ = ["ArrayTree", "part_of"]


_NOTHING = object()
_MAX_SHOWN = 60


class ArrayTree:
    """A nest of dicts, lists and tuples with arrays in it, or one array. `value` is the newest: a load changes dicts,
    lists and NumPy arrays in place, so that the script's own names for them stay true, and replaces what cannot be
    changed."""

    def __init__(self, value: Any, name: str = "") -> None:
        self.value = value
        self._name = name
        # By identity, and weakly: what the script puts into its place by itself is not its first array any more.
        self._given = {id(array): weakref.ref(array) for array in _arrays(value)}

    def state_dict(self) -> dict[str, Any]:
        return {"tree": self.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        new = state["tree"]
        self._check(self._name, self.value, new)  # all of it first: what is refused is left as it was
        self.value = _filled(self.value, new)

    def _check(self, place: str, old: Any, new: Any) -> None:
        """The script trains the arrays that it gave: another in the place of one would be saved, and never change. An
        empty one is trained by nobody, so whatever the script has made of it may take its place."""
        if isinstance(old, np.ndarray):
            given = self._given.get(id(old))
            if given is not None and given() is old and not _fits(old, new):
                raise InvalidArgument(
                    f"{place} has shape {old.shape} ({old.dtype}), and {_said(new)} in the checkpoint",
                    hint="Go on with the same model, or choose another name or path. An array that grows begins empty, "
                    "in a dict.",
                )
        elif isinstance(old, dict):
            known = new if isinstance(new, dict) else {}
            for key, item in old.items():
                self._check(f"{place}[{_shown(key)}]", item, known.get(key, _NOTHING))
        elif isinstance(old, list | tuple):
            items = new if isinstance(new, list | tuple) else ()
            for index, item in enumerate(old):
                self._check(f"{place}[{index}]", item, items[index] if index < len(items) else _NOTHING)


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    """Those that hold something, in whatever holds them."""
    pending, seen = [value], set()
    while pending:
        node = pending.pop()
        if isinstance(node, np.ndarray):
            if node.size:
                yield node
        elif isinstance(node, dict | list | tuple) and id(node) not in seen:
            seen.add(id(node))
            pending.extend(node.values() if isinstance(node, dict) else node)


def _fits(old: NDArray[Any], new: Any) -> bool:
    """Whether the saved value may take the array's place. A plain value that was saved was put there by the script."""
    if isinstance(new, np.ndarray | np.generic):
        return _alike(old, new)
    return new is not _NOTHING and not isinstance(new, dict | list | tuple)


def _alike(old: NDArray[Any], new: NDArray[Any] | np.generic) -> bool:
    """Whether one can be filled with the other. Checkpoints hold the byte order of this machine."""
    return old.shape == new.shape and old.dtype.newbyteorder("=") == new.dtype.newbyteorder("=")


def _said(new: Any) -> str:
    if isinstance(new, np.ndarray | np.generic):
        return f"{new.shape} ({new.dtype})"
    return "nothing" if new is _NOTHING else f"a {type(new).__name__}"


def _shown(key: Any) -> str:
    return repr(key if len(str(key)) <= _MAX_SHOWN else f"{str(key)[:_MAX_SHOWN]}…")


def _filled(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - new.keys():
            del old[key]
        for key, item in new.items():
            old[key] = _filled(old.get(key), item)
        return old
    if isinstance(old, list) and isinstance(new, list):
        old[:] = [*map(_filled, old, new), *new[len(old) :]]
        return old
    if isinstance(old, tuple) and isinstance(new, tuple):
        items = (*map(_filled, old, new), *new[len(old) :])
        return old if len(items) == len(old) and all(map(operator.is_, items, old)) else items
    if (
        isinstance(old, np.ndarray)
        and isinstance(new, np.ndarray | np.generic)
        and old.flags.writeable
        and _alike(old, new)
    ):
        np.copyto(old, new)
        return old
    return new


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
