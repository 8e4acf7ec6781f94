"""Waiting for a condition, never for a time: polls until it holds, and says what it waited for when it does not."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["eventually"]

_T = TypeVar("_T")


def eventually(what: str, look: Callable[[], _T | None], *, within_s: float = 15.0) -> _T:
    """The first truthy answer of `look`."""
    deadline = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {within_s:g} s")
        time.sleep(0.02)
