"""Why a task stands as it does: one verdict, which the page, the commands, `strata.Api` and assistants show alike."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Evidence", "Verdict", "VerdictKind"]


class VerdictKind(StrEnum):
    """The first cause. The first four are no fault; `unknown` names nobody."""

    NONE = "none"
    WAITING = "waiting"
    STOPPED = "stopped"
    GROWN = "grown"
    EXCEPTION = "exception"
    IMPORT_ERROR = "import_error"
    USAGE = "usage"
    BAD_LOSS = "bad_loss"
    DISK_FULL = "disk_full"
    STORAGE_REFUSED = "storage_refused"
    EXIT = "exit"
    CRASH = "crash"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    HANG = "hang"
    SUSPENDED = "suspended"
    CANNOT_START = "cannot_start"
    HOST_LOST = "host_lost"
    HOST_DRAINED = "host_drained"
    ASKED_TO_STOP = "asked_to_stop"
    STRAGGLER = "straggler"
    COORDINATOR_RESTARTED = "coordinator_restarted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing that was seen. `source` is who saw it: agent, coordinator, metric or checkpoint."""

    source: str
    text: str
    rank: int | None
    at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`sentence` says it whole. `rank` and `host` are where it began, null when nobody can say; `hit_ranks` are the
    others that it interrupted; `seconds_lost` is work to do again, and the time until work went on."""

    task_id: str
    kind: VerdictKind
    sentence: str
    cause: str
    advice: str
    rank: int | None
    host: str | None
    step: int | None
    attempt: int | None
    at: int | None
    at_ms: int | None
    hit_ranks: list[int]
    seconds_lost: float | None
    evidence: list[Evidence]
