"""Named places where a test may stop a save: the process that has STRATA_FAULT set dies, fails or hangs exactly there.

`STRATA_FAULT=point:action[@n]` with action kill (SIGKILL), fail (OSError) or hang; `n` counts visits, from 1. Without
the variable a visit costs one comparison with None.
"""

import os
import signal
import threading
from dataclasses import dataclass
from typing import Final

from strata.errors import InvalidConfig

__all__ = ["POINTS", "Fault", "parse_fault", "reach"]

POINTS: Final = (
    "begun",  # the attempt has its id, nothing is written
    "staged",  # the state is copied, the trainer goes on
    "copying",  # a slice of the state is about to be copied, the trainer has gone on (sliced saves only)
    "data_part",  # a chunk of the rank's object is about to be written
    "data_sent",  # every byte is handed over, none is durable for sure
    "data_durable",  # the rank's object is complete, its manifest is not written
    "manifest_durable",  # the manifest is written, the vote is not cast
    "voted",  # the vote is cast, nobody has decided
    "votes_in",  # the committer has all votes
    "before_commit",  # COMMIT.json is composed, not written
    "committed",  # COMMIT.json exists, nobody was told
    "published",  # the coordinator knows; retention has not run
    "retired",  # retention removed a COMMIT.json, its data still lies there
)
_ACTIONS: Final = ("kill", "fail", "hang")


@dataclass(slots=True, kw_only=True)
class Fault:
    """An armed fault. It acts when `visits` has counted down to zero."""

    point: str
    action: str
    visits: int = 1


def parse_fault(text: str | None) -> Fault | None:
    """`point:action[@n]`; None and '' mean none."""
    if not text:
        return None
    point, _, rest = text.partition(":")
    action, _, count = rest.partition("@")
    if point not in POINTS or action not in _ACTIONS or not (count or "1").isdecimal():
        allowed = f"{'|'.join(POINTS)}:{'|'.join(_ACTIONS)}[@n]"
        raise InvalidConfig(f"STRATA_FAULT is {text!r}; allowed is {allowed}")
    return Fault(point=point, action=action, visits=int(count or "1"))


_armed = parse_fault(os.environ.get("STRATA_FAULT"))


def reach(point: str) -> None:
    """Marks a place by its name; acts only when that place is armed in this process."""
    if _armed is None or _armed.point != point:
        return
    _armed.visits -= 1
    if _armed.visits != 0:
        return
    if _armed.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if _armed.action == "hang":
        threading.Event().wait()
    raise OSError(f"fault injected at {point}")
