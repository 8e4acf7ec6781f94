"""Workers and agents: who came, and who is gone."""

from dataclasses import dataclass

from strata.cluster.events.base import Event
from strata.types.workers import AgentFacts, WorkerFacts

__all__ = ["AgentDraining", "AgentJoined", "AgentLost", "ClusterStarted", "MembersLost", "WorkerJoined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStarted(Event):
    """A coordinator took over: `term` counts its starts, `cluster_id` stays for the life of the data folder. `after` is
    the number of the last record that it found."""

    cluster_id: str
    term: int
    started_at: float
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJoined(WorkerFacts, Event):
    """A worker took a rank of its group, new or again; whoever held the id or the rank before is fenced."""

    rank: int
    generation: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersLost(Event):
    """Workers of one group died, or left of their own will (`left`), in one step; `reasons` says why, one by one."""

    task_id: str
    generation: int
    worker_ids: tuple[str, ...]
    reasons: tuple[str, ...]
    left: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentJoined(AgentFacts, Event):
    """A host offers its slots."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLost(Event):
    """A host is gone: its lease ran out, or it said goodbye (`left`)."""

    agent_id: str
    reason: str
    left: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDraining(Event):
    """A host goes away, as somebody decided or it said itself (`noticed`); with no reason, it stays after all."""

    agent_id: str
    reason: str
    deadline: float | None
    noticed: bool
    at: float
