"""The ranks that train together when none is replaced in place: a death ends all, and all start anew from the newest
checkpoint.
"""

import logging
from typing import Any

from strata.worker.elastic.keepers import Stateful
from strata.worker.elastic.memory import Memory
from strata.worker.elastic.saves import Saves
from strata.worker.elastic.world import Restored
from strata.worker.run import Run

__all__ = ["SteadyWorld"]

_log = logging.getLogger(__name__)


class SteadyWorld:
    """To a loop it is what the World of an elastic function is."""

    def __init__(self, run: Run, memory: Memory, saves: Saves) -> None:
        self.run = run
        self.saves = saves
        self._memory = memory

    def restore(self, **parts: Stateful) -> Restored:
        """The state of the newest checkpoint that all ranks can load, or the parts as they are. Collective."""
        self._memory.hold(parts)
        with self.run.section("recovery"):
            found = self.saves.restore()
        step, source = (0, "new") if found is None else (found, "checkpoint")
        self._memory.commit(step)
        self.run.progress(step)
        if found is not None and self.run.rank == 0:
            _log.warning("goes on after step %d, from %s", step, self.saves.path)
        return Restored(step=step, source=source)

    def seed(self, number: int) -> None:
        self._memory.seed(number)

    def commit(self, step: int) -> None:
        self._memory.commit(step)
        self.run.progress(step)
        self.saves.save_if_due()

    def wrap(self, model: Any, **_: Any) -> Any:
        """The script has wrapped it itself, if at all."""
        return model
