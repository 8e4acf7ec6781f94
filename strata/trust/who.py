"""The kinds of callers, and what a server knows of one."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["OWNER", "STRANGER", "Visitor", "Who"]


class Who(StrEnum):
    """OWNER runs Strata, is root, or holds the cluster's token. OPERATOR, AGENT and VIEWER hold one that was made for
    them. RANK is a process of one attempt of one task, elsewhere. STRANGER is everybody else."""

    OWNER = "owner"
    OPERATOR = "operator"
    AGENT = "agent"
    VIEWER = "viewer"
    RANK = "rank"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A caller as a server recognised it. `task_id` and `attempt` say whose rank it is, `agent_id` which agent,
    `token_id` by which token it came; they are empty for others. `fault` says why what it showed is no good."""

    who: Who
    task_id: str = ""
    attempt: int = 0
    token_id: str = ""
    agent_id: str = ""
    fault: str = ""

    @property
    def may_all(self) -> bool:
        """Whether every task is its own."""
        return self.who in (Who.OWNER, Who.OPERATOR)

    def owns_task(self, task_id: str) -> bool:
        return self.may_all or (self.who is Who.RANK and task_id == self.task_id)

    def owns_worker(self, worker_id: str) -> bool:
        """Ranks are named `<task>-<rank>`."""
        task_id, _, rank = worker_id.rpartition("-")
        return self.may_all or (self.owns_task(task_id) and rank.isdecimal())


OWNER = Visitor(Who.OWNER)
STRANGER = Visitor(Who.STRANGER)
