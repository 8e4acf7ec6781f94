"""Loads a state for a running job: from the newest good checkpoint, from an older one when that is damaged, and from
the same step on all ranks.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from strata.checkpoint.catalog import Catalog
from strata.checkpoint.fork import Base
from strata.checkpoint.manifest import CommitManifest
from strata.checkpoint.reader import CheckpointReader, LoadRequest
from strata.errors import CheckpointError, CorruptCheckpoint
from strata.storage.base import ObjectStore
from strata.types.checkpoints import CheckpointInfo
from strata.types.ranks import ranks_text

__all__ = ["Agree", "Loaded", "Recovery", "Restorer"]

_log = logging.getLogger(__name__)
_NOTHING = -1

Agree = Callable[[int], Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A state and the checkpoint it came from."""

    commit: CommitManifest
    state: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Where a restarted worker goes on: the checkpoint, the state in it, and the position in the data when it was
    saved. `world_size` ranks saved it. Where another number is there now, rank r has the state of rank r modulo that;
    what each rank had of its own is read with `load(step, rank=…, world_size=…)`."""

    info: CheckpointInfo
    state: Any
    data_state: Any
    world_size: int = 1


class Restorer:
    """Loads states. A checkpoint that turns out to be damaged is noted and reported, never deleted."""

    def __init__(self, store: ObjectStore, catalog: Catalog, base: Base | None = None) -> None:
        self._store = store
        self._catalog = catalog
        self._base = base

    def load(self, commit: CommitManifest, request: LoadRequest) -> Any:
        started = time.monotonic()
        with self._catalog.reading(commit.step):
            try:
                state = CheckpointReader(self._store, commit).load(request)
            except CorruptCheckpoint as error:
                self._catalog.note(commit, str(error))
                raise
            if commit.world_size == 1 and _is_whole(commit, request):
                self._catalog.note(commit)
        _log.info("step %d loaded from %s in %.2f s", commit.step, self._store.uri, time.monotonic() - started)
        return state

    def load_step(self, step: int, request: LoadRequest) -> Any:
        """Of this very step: an own checkpoint, or the one that a fork begins with."""
        if self._is_base(step):
            return self._load_base(request).state
        return self.load(self._catalog.commit_of(step), request)

    def open(self, step: int) -> CheckpointReader:
        if self._base is not None and self._is_base(step):
            return self._base.reader()
        return CheckpointReader(self._store, self._catalog.commit_of(step))

    def _is_base(self, step: int) -> bool:
        """An own checkpoint of the same step goes before."""
        return self._base is not None and self._base.step == step and step not in self._catalog.steps()

    def _is_own(self, found: Loaded) -> bool:
        return not self._is_base(found.commit.step)

    def _load_base(self, request: LoadRequest) -> Loaded:
        assert self._base is not None
        started = time.monotonic()
        reader = self._base.reader()
        found = Loaded(commit=reader.commit, state=reader.load(request))
        _log.info("forked from step %d of %s in %.2f s", self._base.step, self._base.uri, time.monotonic() - started)
        return found

    def newest_good(self, request: LoadRequest, *, bound: int | None = None) -> Loaded | None:
        """The newest checkpoint (not above `bound`) whose bytes are good, at last the one that a fork begins with; None
        when none was ever committed.

        Raises CorruptCheckpoint when there are some and all are damaged: starting from scratch must be somebody's
        decision.
        """
        damaged: list[str] = []
        for commit in self._catalog.commits():
            if bound is not None and commit.step > bound:
                continue
            try:
                state = self.load(commit, request)
            except CorruptCheckpoint as error:
                _log.error("%s; falling back to the checkpoint before it", error)
                damaged.append(str(error))
                continue
            if damaged:
                _log.warning("step %d is good and is used instead", commit.step)
            return Loaded(commit=commit, state=state)
        if self._base is not None and (bound is None or self._base.step <= bound):
            return self._load_base(request)
        if damaged:
            raise CorruptCheckpoint("no checkpoint is good: " + "; ".join(damaged))
        return None

    def agreed(self, request: LoadRequest, agree: Agree) -> Loaded | None:
        """As `newest_good`, the same step on every rank: `agree` tells this rank's step to all and returns
        everybody's."""
        bound: int | None = None
        while True:
            failure: CorruptCheckpoint | None = None
            found: Loaded | None = None
            try:
                found = self.newest_good(request, bound=bound)
            except CorruptCheckpoint as error:
                failure = error
            steps = list(agree(_NOTHING if found is None else found.commit.step))
            if failure is not None:
                raise failure
            if len(set(steps)) == 1:
                if found is not None and bound is not None:
                    self._catalog.distrust_above(found.commit.step)
                # Each rank has read its own part, and all are here: so every byte was found good.
                if found is not None and request.rank == 0 and self._is_own(found) and _is_whole(found.commit, request):
                    self._catalog.note(found.commit)
                return found
            bound = min(steps)
            if bound == _NOTHING:
                empty = [rank for rank, step in enumerate(steps) if step == _NOTHING]
                others = sorted(set(steps) - {_NOTHING})
                raise CheckpointError(f"{ranks_text(empty)} can load no checkpoint, others can (steps {others})")


def _is_whole(commit: CommitManifest, request: LoadRequest) -> bool:
    """Whether loads like this one of all ranks read every byte against its hash: another number of ranks may pass over
    what is not cut."""
    return request.verify and request.names is None and request.world_size == commit.world_size
