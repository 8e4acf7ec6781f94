"""Waiting for a condition, never for a time: polls until it holds, and says what it waited for when it does not."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["PATIENCE", "eventually"]

_T = TypeVar("_T")
PATIENCE = 4
"""How much slower a machine may be whose cores are busy. A limit costs nothing where the condition holds."""
_FIRST_S, _LONGEST_S, _SHARE = 0.01, 0.06, 0.05
"""Looks cost the cores that the awaited work needs: the longer it takes, the fewer, and none is late by much."""


def eventually(what: str, look: Callable[[], _T | None], *, within_s: float = 30.0) -> _T:
    """The first truthy answer of `look`. `within_s` is what a quiet machine needs at the very most."""
    began = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        waited_s = time.monotonic() - began
        if waited_s > PATIENCE * within_s:
            raise AssertionError(f"{what} did not happen within {PATIENCE * within_s:g} s (last: {found!r})")
        time.sleep(min(_LONGEST_S, _FIRST_S + _SHARE * waited_s))
