"""Hosts as REST shows them."""

from dataclasses import dataclass

__all__ = ["Host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host's agent. `draining` says why it goes away, null: it stays; `deadline` (Unix seconds) when, if that is
    known, and `noticed` that it said so itself. `tasks` have ranks there now."""

    id: str
    hostname: str
    state: str
    reason: str | None
    launcher: str
    slots: int
    gpu_count: int
    draining: str | None
    deadline: float | None
    noticed: bool
    tasks: list[str]
