"""Checkpoints of a training loop: saved behind it when a step is due, given up when a rank dies meanwhile. All go back
to the newest when nobody has the state in memory.
"""

import contextlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from strata.checkpoint.manager import CheckpointManager
from strata.errors import CheckpointAborted, CheckpointTorn, Fenced, InvalidArgument
from strata.worker.elastic.memory import Memory
from strata.worker.environment import checkpoint_path
from strata.worker.points import Unfit, number_of
from strata.worker.run import Run

__all__ = ["SavePlan", "Saves"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavePlan:
    """A save `every` so many steps (0: never) to `path` (empty: the task's own place); the newest `keep_count` stay,
    and the best by a metric if `keep_best` names one. `sliced`: nobody but the optimizers writes to what they train,
    so that it is copied while the next step computes."""

    every: int = 0
    path: str = ""
    keep_count: int | None = 5
    keep_best: tuple[str, str] | None = None
    sliced: bool = False

    def __post_init__(self) -> None:
        if type(self.every) is not int or self.every < 0:
            raise InvalidArgument(f"every is {self.every!r}, it must be a number of steps, or 0 for no checkpoints")


class Saves:
    """Each rank saves its own state; what all have alike is written once. Each has its own random numbers."""

    def __init__(self, run: Run, memory: Memory, plan: SavePlan) -> None:
        self.plan = plan
        self.epoch = 0  # how many epochs of the loader are done, of a loop that has one
        self._run = run
        self._memory = memory
        self._metrics: dict[str, float] = {}

    @cached_property
    def _checkpoints(self) -> CheckpointManager:
        plan = self.plan
        path = plan.path or checkpoint_path(self._run.place)
        return CheckpointManager(path, keep_count=plan.keep_count, keep_best=plan.keep_best)

    @property
    def path(self) -> str:
        return self._checkpoints.path

    def note(self, metrics: Mapping[str, Any]) -> None:
        """The newest value of the metric that says which checkpoint is best goes with the next save."""
        name = self.plan.keep_best[0] if self.plan.keep_best else None
        if name is not None and name in metrics:
            with contextlib.suppress(Unfit):  # the reporter says so
                number = number_of(metrics[name])
                self._metrics = {name: number} if math.isfinite(number) else {}

    def restore(self) -> int | None:
        """All ranks load the newest checkpoint that all can read; returns its step. Collective."""
        found = self._checkpoints.recover(share=True, block_of=self._memory.block_of)
        if found is None:
            return None
        step, rank = found.info.step, self._run.rank
        if not isinstance(found.state, Mapping) or not found.state.keys() >= {"parts", "random"}:
            raise InvalidArgument(
                f"step {step} in {self.path} was not saved by a training loop", hint="Give the loop a path of its own."
            )
        self._memory.load(found.state["parts"])
        if rank < found.world_size:
            self._memory.load_random(found.state["random"])
        else:
            self._memory.seed(hash((step, rank, self._run.place.attempt)))  # nobody had this rank before
        return step

    def save_if_due(self) -> None:
        step = self._memory.step
        if self.plan.every and step % self.plan.every == 0:
            self._whatever_was_given_up(self._save_behind)

    def finish(self) -> None:
        """The last step is saved, too. Collective."""
        if not self.plan.every:
            return
        self._whatever_was_given_up(self._checkpoints.wait)
        latest = self._checkpoints.get_latest()
        if latest is None or latest.step < self._memory.step:
            self._save(self._checkpoints.save)

    def close(self) -> None:
        self._checkpoints.close()

    def close_after(self, error: BaseException) -> None:
        """Ends saves that are under way; a failure of theirs is logged, for the error matters more."""
        self._checkpoints.__exit__(type(error), error, error.__traceback__)

    def _save(self, save: Callable[..., object]) -> None:
        metadata = {"metrics": self._metrics, "run": self._run.id}
        save(self._state(), self._memory.step, epoch=self.epoch, metadata=metadata, share=True)

    def _save_behind(self) -> None:
        optimizers = self._memory.optimizers if self.plan.sliced else []
        self._save(partial(self._checkpoints.save_async, until=optimizers or None))

    def _whatever_was_given_up(self, action: Callable[[], object]) -> None:
        """Acts, even if an earlier save ended because a rank died: the next due step is saved instead."""
        while True:
            try:
                action()
                return
            except CheckpointTorn as error:
                _log.warning("%s; from now on every save copies at once", error)
                self.plan = replace(self.plan, sliced=False)
            except (CheckpointAborted, Fenced) as error:
                _log.warning("%s; the next save is tried when it is due", error)

    def _state(self) -> dict[str, Any]:
        # The step is an array, so that no two saves of a rank are alike: that is taken for a state that stands still.
        step = np.array([self._memory.step, self._run.rank])
        return {"parts": self._memory.state(), "random": self._memory.random, "step": step}
