"""How a run stands: the one decision about it, from what its owner said, its task and its silence. Pure."""

from dataclasses import dataclass
from functools import lru_cache

from strata.types.metrics import ACTIVE_WINDOW_S, RunState

__all__ = ["LOOK_S", "RunFacts", "RunVerdict", "plan_state", "said_end"]

# A process that lives says so every 5 s: so long after its last word it is worth a look whether it is still there.
LOOK_S = 8.0
_OF_TASK = {"completed": RunState.FINISHED, "failed": RunState.FAILED, "stopped": RunState.KILLED}
_SAID = {"finished": RunState.FINISHED, "failed": RunState.FAILED, "killed": RunState.KILLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """`said` and `reason` are its owner's last word, `task` its task's status and reason, `silent_s` how long nothing
    was heard of it. `is_gone`: its process ran on this machine and is no more; None when nobody can tell."""

    said: str | None
    reason: str
    task: tuple[str, str] | None
    silent_s: float
    is_gone: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    state: RunState
    reason: str


@lru_cache(maxsize=1024)
def said_end(said: str | None, reason: str) -> RunVerdict | None:
    """The end that the run's own word is; None when it is none. Most runs have one, and one of a few."""
    return RunVerdict(state=_SAID[said], reason=reason) if said in _SAID else None


def plan_state(facts: RunFacts, timeout_s: float) -> RunVerdict:
    """A task knows best, then the run's own word, then its silence."""
    if facts.task is not None:
        status, reason = facts.task
        if status in _OF_TASK:
            return RunVerdict(state=_OF_TASK[status], reason=reason or f"its task is {status}")
        return RunVerdict(state=RunState.RUNNING, reason=f"its task is {status}")
    end = said_end(facts.said, facts.reason)
    if end is not None:
        return end
    if facts.said is None:
        if facts.silent_s < ACTIVE_WINDOW_S:
            return RunVerdict(state=RunState.RUNNING, reason="")
        return RunVerdict(state=RunState.FINISHED, reason="no points for five minutes; its writer says no more")
    if facts.is_gone and facts.silent_s >= LOOK_S:
        return RunVerdict(state=RunState.KILLED, reason="its process is gone and did not say why")
    if facts.silent_s >= timeout_s:
        return RunVerdict(state=RunState.LOST, reason=f"nothing was heard of it for {timeout_s:g} s")
    return RunVerdict(state=RunState.RUNNING, reason="")
