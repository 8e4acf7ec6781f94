"""The kinds of callers, and what a server knows of one."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["OWNER", "STRANGER", "Visitor", "Who"]


class Who(StrEnum):
    """OWNER runs Strata, is root, or holds the cluster's token: an agent and an operator are owners today. RANK is a
    process of one attempt of one task, elsewhere. STRANGER is everybody else."""

    OWNER = "owner"
    RANK = "rank"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A caller as a server recognised it. `task_id` and `attempt` say whose rank it is, and are empty for others."""

    who: Who
    task_id: str = ""
    attempt: int = 0

    def owns_task(self, task_id: str) -> bool:
        """Whether this task is the visitor's own; an owner's is every one."""
        return self.who is Who.OWNER or (self.who is Who.RANK and task_id == self.task_id)

    def owns_worker(self, worker_id: str) -> bool:
        """Ranks are named `<task>-<rank>`."""
        task_id, _, rank = worker_id.rpartition("-")
        return self.who is Who.OWNER or (self.owns_task(task_id) and rank.isdecimal())


OWNER = Visitor(Who.OWNER)
STRANGER = Visitor(Who.STRANGER)
