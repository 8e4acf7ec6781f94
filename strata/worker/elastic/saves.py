"""Checkpoints of an elastic training: saved behind it when a step is due, given up when a rank dies meanwhile. All go
back to the newest when nobody has the state in memory.
"""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from strata.errors import CheckpointAborted, Fenced, InvalidArgument
from strata.worker.elastic.memory import Memory
from strata.worker.run import Run

__all__ = ["Saves"]

_log = logging.getLogger(__name__)


class Saves:
    """`every` so many steps, 0: never. Rank 0 saves what all ranks have alike, each rank its own random numbers."""

    def __init__(self, run: Run, memory: Memory, every: int) -> None:
        if type(every) is not int or every < 0:
            raise InvalidArgument(f"every is {every!r}, it must be a number of steps, or 0 for no checkpoints")
        self._run = run
        self._memory = memory
        self._every = every
        self._checkpoints = run.checkpoints()

    def restore(self) -> int | None:
        """All ranks load the newest checkpoint that all can read; returns its step. Collective."""
        found = self._checkpoints.recover()
        if found is None:
            return None
        step = found.info.step
        whole = found.state if self._run.rank == 0 else self._checkpoints.load(step, rank=0)
        self._memory.load(whole["parts"])
        self._memory.load_random(found.state["random"])
        return step

    def save_if_due(self) -> None:
        step = self._memory.step
        if self._every and step % self._every == 0:
            state = self._state()
            self._whatever_was_given_up(lambda: self._checkpoints.save_async(state, step))

    def finish(self) -> None:
        """The last step is saved, too. Collective."""
        self._whatever_was_given_up(self._checkpoints.wait)
        latest = self._checkpoints.get_latest()
        if self._every and (latest is None or latest.step < self._memory.step):
            self._checkpoints.save(self._state(), self._memory.step)

    def close(self) -> None:
        self._checkpoints.close()

    def _whatever_was_given_up(self, action: Callable[[], object]) -> None:
        """Acts, even if an earlier save ended because a rank died: the next due step is saved instead."""
        while True:
            try:
                action()
                return
            except (CheckpointAborted, Fenced) as error:
                _log.warning("%s; the next save is tried when it is due", error)

    def _state(self) -> dict[str, Any]:
        parts = {"parts": self._memory.state()} if self._run.rank == 0 else {}
        # The step is an array, so that no two saves of a rank are alike: that is taken for a state that stands still.
        return {**parts, "random": self._memory.random, "step": np.int64(self._memory.step)}
