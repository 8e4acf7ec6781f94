"""The root of all events."""

from dataclasses import dataclass

__all__ = ["Event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The root of all kinds; `kind` on the wire is the class's name."""
