"""Whether a process joins the cluster: a rank of a task must, others do when a coordinator answers."""

import contextlib
import socket
from typing import TYPE_CHECKING

from strata.errors import StrataError
from strata.worker.environment import Place

if TYPE_CHECKING:
    from strata.worker.session import Session

__all__ = ["join"]


def join(place: Place) -> "Session | None":
    """A task's rank must join; ranks of another launcher do so when a coordinator answers; a lone script need not."""
    if not place.task_id and not (place.group and any(map(_answers, place.coordinators))):
        return None
    from strata.worker.session import Session  # only for those who join

    try:
        session = Session(place)
    except StrataError:
        if place.task_id:
            raise
        return None
    session.watch_signals()
    return session


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=0.5):
        return True
    return False
