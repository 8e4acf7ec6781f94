"""What the observatory knows of the cluster, for commands. Right after a start it has not heard the coordinator yet: a
command waits for that a little, and says so.
"""

import time
from typing import Any

from rich.console import Console

from strata.client.rest import Rest
from strata.errors import CoordinatorUnavailable

__all__ = ["cluster_rows", "hear_coordinator"]

# A feed that found nobody tries again after 0.2, 0.5, 1 and 2 s (strata/observatory/cluster/follower.py).
_WAIT_S = 5.0
_LOOK_S = 0.1


def cluster_rows(rest: Rest, path: str) -> list[dict[str, Any]]:
    """One list of the cluster."""
    hear_coordinator(rest)
    rows: list[dict[str, Any]] = rest.get(path)
    return rows


def hear_coordinator(rest: Rest) -> None:
    """Returns when the observatory hears the coordinator. Where it does so no more, that is said: what it knows is old.
    Where it never has, nobody can tell what there is: an error, after a short wait."""
    status = rest.get("/api/status")
    if _never_heard(status):
        _say(f"waiting for the coordinator at {status['address']}")
        ends_at = time.monotonic() + _WAIT_S
        while _never_heard(status) and time.monotonic() < ends_at:
            time.sleep(_LOOK_S)
            status = rest.get("/api/status")
    if status["connected"]:
        return
    problem = status["problem"]
    if _never_heard(status):
        address = status["address"]
        raise CoordinatorUnavailable(f"the observatory has not heard the coordinator at {address} yet: {problem}")
    _say(f"{problem}: this was known last")


def _never_heard(status: dict[str, Any]) -> bool:
    return not status["connected"] and status["cluster_id"] is None


def _say(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)
