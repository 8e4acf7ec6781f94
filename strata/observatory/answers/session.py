"""Who asks, as the server recognised it, and what it may do."""

from dataclasses import dataclass

__all__ = ["Caller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`may` are the requests that this caller may send and a viewer may not, as METHOD and route: a page shows their
    buttons to nobody else."""

    who: str
    may: list[str]
