"""Limits how many lines a busy place writes to the log: a few at once, then one line that counts the rest."""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from strata.clock import Clock

__all__ = ["HeldBack", "LineBudget"]

_MAX_KEYS = 1_000  # of one window; a caller that invents more of them shares one budget

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack(Generic[Key]):
    """How many lines of one key were not written, and in how many seconds."""

    key: Key
    count: int
    seconds: float


@dataclass(slots=True)
class _Window:
    begun_at: float
    lines: int = 0


class LineBudget(Generic[Key]):
    """At most `burst` lines per key in `window_s`. May be used from several threads."""

    def __init__(self, clock: Clock, *, burst: int = 3, window_s: float = 10.0) -> None:
        self._clock = clock
        self._burst = burst
        self._window_s = window_s
        self._windows: dict[Key | None, _Window] = {}
        self._lock = threading.Lock()

    def allows(self, key: Key) -> bool:
        """True when a line may be written now; else it is counted for `held_back`."""
        with self._lock:
            window = self._windows.get(key)
            if window is None:
                known = key if len(self._windows) < _MAX_KEYS else None
                window = self._windows.setdefault(known, _Window(self._clock.monotonic()))
            window.lines += 1
            return window.lines <= self._burst

    def held_back(self) -> list[HeldBack[Key | None]]:
        """Closes the windows that are over and returns what they held back. A caller must ask from time to time."""
        if not self._windows:
            return []
        now = self._clock.monotonic()
        with self._lock:
            over = [(key, one) for key, one in self._windows.items() if now - one.begun_at >= self._window_s]
            for key, _ in over:
                del self._windows[key]
        return [
            HeldBack(key=key, count=one.lines - self._burst, seconds=now - one.begun_at)
            for key, one in over
            if one.lines > self._burst
        ]
