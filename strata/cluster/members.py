"""Workers in groups, and the agents that start them, as records."""

from dataclasses import dataclass

from strata.types.workers import AgentFacts, MemberState, WorkerFacts

__all__ = ["Agent", "Group", "Worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker(WorkerFacts):
    """One worker. `state` is what events say: a suspicion is no event, so no record holds one."""

    rank: int
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
class Agent(AgentFacts):
    """One host's agent. `draining` says why the host goes away, if it does: nothing more is placed there; `deadline`
    (Unix seconds) is when, if that is known, and `noticed` that it said so itself, for as long as its agent lives."""

    joined_at: float
    state: MemberState = MemberState.READY
    reason: str = ""
    draining: str = ""
    deadline: float | None = None
    noticed: bool = False

    @property
    def alive(self) -> bool:
        return self.state.alive
