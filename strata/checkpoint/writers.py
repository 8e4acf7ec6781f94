"""Who writes to the arrays of a state, and when: which of them may be copied after a save has returned, and whose next
write waits for that. torch's optimizers say so by a hook; a script of its own says it by `handle.stage()`.
"""

import weakref
from collections.abc import Callable
from typing import Any, Literal

from strata.checkpoint import tensors
from strata.checkpoint.image import Image
from strata.errors import InvalidArgument

__all__ = ["Until", "Writers", "later_in", "optimizers_in"]

Until = Literal["stage"] | Any | None
"""`"stage"`, a torch optimizer, or several of them."""


def optimizers_in(until: Until) -> list[Any]:
    """The optimizers themselves, without the wrappers of other libraries."""
    given = until if isinstance(until, list | tuple) else [until]
    return [_unwrapped(each) for each in given]


def _unwrapped(given: Any) -> Any:
    inner = getattr(given, "optimizer", None)
    if hasattr(inner, "register_step_pre_hook"):
        return _unwrapped(inner)
    if not (hasattr(given, "register_step_pre_hook") and hasattr(given, "param_groups")):
        raise InvalidArgument(
            f"until is a {type(given).__module__}.{type(given).__qualname__}, which says nothing before it writes",
            hint='Give a torch optimizer, a list of them, or "stage" and call handle.stage() before each write.',
        )
    return given


def later_in(image: Image, until: Until) -> frozenset[str]:
    """The arrays of a save that may be copied after it has returned: those that only the named ones write to. All
    others may change at any moment, as a BatchNorm's buffers do in every forward pass."""
    if until is None or image.immutable:
        return frozenset()
    able = {name: source for name, source in image.sources.items() if source.sliceable and source.nbytes}
    if isinstance(until, str):
        if until != "stage":
            raise InvalidArgument(f"until is {until!r}", hint='Allowed are a torch optimizer, a list of them, "stage".')
        return frozenset(able)
    written = set[int]().union(*map(tensors.written_by, optimizers_in(until)))
    return frozenset(
        name for name, source in able.items() if source.kind == "torch" and source.value.data_ptr() in written
    )


class Writers:
    """The optimizers that call `before_write` before each of their steps. Each is asked for that once."""

    def __init__(self, before_write: Callable[[], None]) -> None:
        self._before_write = weakref.WeakMethod(before_write)
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()

    def watch(self, until: Until) -> None:
        if until is None or isinstance(until, str):
            return
        for optimizer in optimizers_in(until):
            if optimizer not in self._watched:
                optimizer.register_step_pre_hook(self._on_step)
                self._watched.add(optimizer)

    def _on_step(self, *_: Any) -> None:
        """An optimizer may outlive the manager."""
        before_write = self._before_write()
        if before_write is not None:
            before_write()
