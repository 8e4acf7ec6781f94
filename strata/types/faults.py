"""Faults: what interrupted a task, as whoever saw it decided. Journaled with the task's course, so that nobody has to
recover it from a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["MAX_FAULTS", "Fault", "FaultKind", "first_cause", "is_of_peer"]

MAX_FAULTS = 16  # of one interruption that are kept: a lost host of a thousand ranks needs no thousand lines

# What a rank raises when another one is gone or has failed, by Strata, by Python's sockets and by torch.
_OF_PEERS = frozenset({"BarrierBroken", "BarrierExpired", "CheckpointAborted", "PeerLost", "BrokenPipeError"})
_OF_PEERS |= {"ConnectionAbortedError", "ConnectionResetError", "DistBackendError", "DistNetworkError"}


class FaultKind(StrEnum):
    """What was seen. The last five are no end of a rank."""

    EXCEPTION = "exception"
    EXIT = "exit"  # an exit code, and no word why
    CRASH = "crash"  # a signal that a program brings upon itself, such as SIGSEGV
    KILLED = "killed"  # a signal from outside
    OUT_OF_MEMORY = "out_of_memory"
    HANG = "hang"
    SUSPENDED = "suspended"  # ended for a hang, but a signal such as SIGSTOP had kept it from running
    UNSTARTED = "unstarted"
    HINDERED = "hindered"
    HOST_LOST = "host_lost"
    TOLD = "told"  # it was told to end by its agent
    FOLLOWED = "followed"  # it ended because another rank had
    UNSEEN = "unseen"
    DRAINED = "drained"  # its host goes away
    ASKED = "asked"  # somebody sent a rank SIGTERM
    STRAGGLER = "straggler"
    GROWN = "grown"

    @classmethod
    def _missing_(cls, value: object) -> "FaultKind":
        """A kind of a newer release is one that nobody here saw, and hides no task."""
        return cls.UNSEEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of them: in which attempt, at which rank, if it is one's, and on which host. `exception` is the type that
    Python named."""

    kind: FaultKind
    attempt: int = 0
    rank: int | None = None
    agent_id: str = ""
    text: str = ""
    exception: str = ""


def is_of_peer(exception: str) -> bool:
    """Whether an exception of this type tells of another rank's end rather than of the rank's own failure."""
    return exception in _OF_PEERS


def first_cause(faults: Sequence[Fault]) -> Fault | None:
    """The one that the others followed from; None when all only tell of one that nobody saw."""
    own = [one for one in faults if not is_of_peer(one.exception) and one.kind is not FaultKind.FOLLOWED]
    return own[0] if own else None
