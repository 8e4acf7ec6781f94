"""This rank as the owner of its checkpoints: its place, who decides about its saves, and what the cluster is shown
meanwhile. Implements strata.checkpoint's Owner.
"""

import contextlib
import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from strata.checkpoint.commit import CommitCoordinator
from strata.checkpoint.fork import Forking
from strata.checkpoint.spreading import Exchange
from strata.checkpoint.store_commit import StoreCommit
from strata.storage.base import ObjectStore
from strata.worker.collective.gang import Gang
from strata.worker.commit import CoordinatorCommit
from strata.worker.environment import Place
from strata.worker.reporter import Reporter
from strata.worker.session import Session

__all__ = ["RunOwner"]

_log = logging.getLogger(__name__)


class _Run(Protocol):
    """What is needed of strata.worker.run's Run, which makes the owner."""

    place: Place

    session: Session | None
    exchange: Exchange | None
    forking: Forking | None

    @property
    def reporter(self) -> Reporter: ...
    @property
    def gang(self) -> Gang: ...
    def section(self, name: str) -> contextlib.AbstractContextManager[None]: ...


class RunOwner:
    """In a task the coordinator decides; ranks that another launcher started decide through the store they share."""

    def __init__(self, run: _Run) -> None:
        place = run.place
        self.place = (place.rank, place.world_size, place.worker_id or None, place.task_id or None)
        self.forking = run.forking
        self.scrub_mb_s = place.settings.scrub_mb_s
        self._run = run

    def decider(self, store: ObjectStore, deadline_s: float) -> CommitCoordinator | None:
        place, session = self._run.place, self._run.session
        if session is not None and place.task_id:
            return CoordinatorCommit(session.channel, lambda: session.member, store.uri, deadline_s)
        if place.world_size == 1:
            return None
        ranks = tuple(range(place.world_size))
        return StoreCommit(store, rank=place.rank, ranks=ranks, generation=place.attempt, deadline_s=deadline_s)

    def agree(self, step: int) -> Sequence[int]:
        """Ranks that cannot talk each take what they find: what they share is one store."""
        place, exchange = self._run.place, self.exchange
        if exchange is None:
            return [step]
        mine = np.zeros(place.world_size)
        mine[place.rank] = step
        return [int(item) for item in exchange.sum(mine)]

    @property
    def exchange(self) -> Exchange | None:
        """The framework's own group if the run was given one, else the gang of a task. Ranks of another launcher have
        no port to meet at."""
        given, place = self._run.exchange, self._run.place
        return self._run.gang if given is None and place.task_id and place.world_size > 1 else given

    def section(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self._run.section(name)

    def before_vote(self, step: int) -> None:
        """A committed step is never trained again, so nobody would log its points a second time."""
        if not self._run.reporter.secure():
            _log.warning("the points up to step %d are not on disk: a kill of this process could lose them", step)
