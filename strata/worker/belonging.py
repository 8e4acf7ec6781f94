"""Tells the checkpoints and loaders of a process whose they are. What they need is imported when the script first uses
them: one that only logs starts without.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from strata.ambient import ambient
from strata.worker.environment import Place
from strata.worker.reporter import Reporter

if TYPE_CHECKING:
    from strata.checkpoint.owner import Owner
    from strata.data.plan import PlanSource
    from strata.data.queue import QueueSource
    from strata.data.watch import ReadWatcher
    from strata.worker.owner import _Run
    from strata.worker.session import Session

__all__ = ["own_checkpoints", "own_loaders"]


def own_checkpoints(run: "Callable[[], _Run]") -> None:
    """From now on a CheckpointManager belongs to the run that this call gives."""
    ambient.owner = partial(_owner, run)


def own_loaders(place: Place, session: "Session | None", reporter: Reporter) -> None:
    """From now on loaders read this rank's part, and the cluster hears what they read if the process is a member."""
    ambient.plan = cache(partial(_plan, place))
    ambient.queue = cache(partial(_queues, session)) if session else None
    ambient.watcher = cache(partial(_watcher, session, reporter)) if session else None


def _owner(run: "Callable[[], _Run]") -> "Owner":
    from strata.worker.owner import RunOwner

    return RunOwner(run())


def _plan(place: Place) -> "PlanSource":
    from strata.worker.plan import WorkerPlan

    return WorkerPlan(place)


def _queues(session: "Session") -> "QueueSource":
    from strata.client.queues import QueuesClient

    return QueuesClient(session.channel, session.member, gang=bool(session.place.task_id))


def _watcher(session: "Session", reporter: Reporter) -> "ReadWatcher":
    from strata.worker.watcher import Watcher

    return Watcher(session, reporter)
