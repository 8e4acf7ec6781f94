"""Workers in groups, and the agents that start them, as records."""

from collections.abc import Mapping
from dataclasses import dataclass

from strata.types.workers import MemberState

__all__ = ["Agent", "Group", "Worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker. `state` is what events say: a suspicion is no event, so no record holds one."""

    worker_id: str
    task_id: str
    incarnation: str
    rank: int
    hostname: str
    port: int
    gpu_count: int
    memory_bytes: int
    agent_id: str
    metadata: Mapping[str, str]
    joined_at: float
    state: MemberState = MemberState.READY
    reason: str = ""
    ended_at: float | None = None

    @property
    def alive(self) -> bool:
        return self.state.alive

    @property
    def is_started_rank(self) -> bool:
        """Whether an agent has started it for its task: such a process is named by `incarnation_of`."""
        return bool(self.task_id) and self.incarnation.startswith(f"{self.task_id}.")

    @property
    def label(self) -> str:
        return f"{self.worker_id} (rank {self.rank})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The workers of one task, or the plain ones (an empty id). `size` is a task's declared worker count; None =
    elastic. `fence` is the generation of the last change that made the world before it invalid."""

    task_id: str
    size: int | None = None
    generation: int = 0
    fence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One host's agent. `checkpoints` is where tasks save unless they name a place; `task_id` is the one task that it
    was started for, empty for one that takes any. `draining` says why the host goes away, if it does: nothing more is
    placed there; `deadline` (Unix seconds) is when, if that is known, and `noticed` that it said so itself, for as long
    as its agent lives."""

    agent_id: str
    incarnation: str
    hostname: str
    address: str
    slots: int
    gpu_count: int
    memory_bytes: int
    version: str
    joined_at: float
    launcher: str = "local"
    checkpoints: str = ""
    task_id: str = ""
    state: MemberState = MemberState.READY
    reason: str = ""
    draining: str = ""
    deadline: float | None = None
    noticed: bool = False

    @property
    def alive(self) -> bool:
        return self.state.alive
