"""A training loop that resumes by itself: it restores, counts steps, saves when due, stops when asked, and saves the
last step.
"""

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from strata.errors import InvalidArgument
from strata.worker.elastic.keepers import Stateful
from strata.worker.elastic.saves import Saves
from strata.worker.elastic.world import Restored
from strata.worker.run import Run
from strata.worker.signals import watch_stop_signals
from strata.worker.training.batches import Batches
from strata.worker.training.trees import ArrayTree

__all__ = ["Job", "JobWorld"]

_log = logging.getLogger(__name__)

_END: Any = object()


class JobWorld(Protocol):
    """The ranks that train together: a World of an elastic function, or a SteadyWorld."""

    run: Run
    saves: Saves

    def restore(self, **parts: Any) -> Restored: ...
    def seed(self, number: int) -> None: ...
    def commit(self, step: int) -> None: ...
    def wrap(self, model: Any, **options: Any) -> Any: ...


class Job:
    """`for step in job`, or with a loader `for step, batch in job`. A step is done when the loop asks for the next."""

    def __init__(
        self,
        world: JobWorld,
        parts: Mapping[str, Stateful],
        *,
        total: int | None,
        epochs: int | None,
        seed: int | None,
        owns_run: bool,
        leaves: bool,
    ) -> None:
        """`owns_run`: the run ends with the job. `leaves`: no elastic function goes on after the job, which so sees to
        the last save."""
        self.run = world.run
        self.rank = world.run.rank
        self.step = 0
        self.stopped = False
        self._world = world
        self._parts = dict(parts)
        self._total = total
        self._epochs = epochs
        self._seed = seed
        self._owns_run = owns_run
        self._leaves = leaves
        self._ended = False
        self._stop = False
        self._signalled = False
        self._unwatch: Callable[[], None] = lambda: None

    @property
    def epoch(self) -> int:
        """How many epochs of the loader are done."""
        batches = self._parts.get("loader")
        return batches.epoch if isinstance(batches, Batches) else 0

    @property
    def state(self) -> "JobState":
        """The parts that are arrays or nests of them, by name, as they are now. A script that makes new ones instead of
        changing them puts them here: `job.state["params"] = params`."""
        return JobState(self._parts)

    def log(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Metrics of the step that is being done: `job.log(loss=loss)`, `job.log({"val/loss": loss})`."""
        metrics = {**(values or {}), **more}
        self._world.saves.note(metrics)
        self.run.log(metrics, step=self.step)

    def wrap(self, model: Any, **options: Any) -> Any:
        """In an elastic function: the model over the ranks of this world."""
        return self._world.wrap(model, **options)

    def stop(self) -> None:
        """Ends the loop after this step, which is saved. Every rank must say it in the same step."""
        self._stop = True

    def __enter__(self) -> Self:
        run = self.run
        if self._leaves and not run.place.task_id and (run.world_size == 1 or run.exchange is not None):
            self._unwatch = watch_stop_signals(self._on_signal)
        restored = self._world.restore(**self._parts)
        self.step = restored.step
        self._tell_progress()
        if self._seed is not None and restored.source == "new":
            self._world.seed(hash((self._seed, run.rank)))
        if self._is_complete() and run.rank == 0:
            _log.warning(
                "step %d is the last: there is nothing left to train; another name or path starts anew", self.step
            )
        return self

    def __iter__(self) -> Iterator[Any]:
        batches = self._parts.get("loader")
        given = batches.until(self._epochs) if isinstance(batches, Batches) else itertools.repeat(None)
        while not self._is_complete() and (item := next(given, _END)) is not _END:
            self.step += 1
            self._ended = False
            yield (self.step, item) if isinstance(batches, Batches) else self.step
            self._ended = True
            self._world.saves.epoch = self.epoch
            self._world.commit(self.step)
            self._tell_progress()
            if self._stop or self._asked_to_stop():
                self.stopped = not self._stop
                return
        self._ended = True

    def _is_complete(self) -> bool:
        return self._total is not None and self.step >= self._total

    def _tell_progress(self) -> None:
        if self._total:
            self.run.progress(self.step, percent=100.0 * self.step / self._total)

    def _on_signal(self) -> None:
        self._signalled = True

    def _asked_to_stop(self) -> bool:
        """For all ranks at the same step: the coordinator names it in a task; elsewhere the ranks ask each other."""
        run = self.run
        if run.place.task_id:
            return run.should_stop()
        if run.world_size == 1 or run.exchange is None:
            return self._signalled
        return bool(run.exchange.sum(np.array([float(self._signalled)]))[0])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._unwatch()
        if not self._leaves:
            return
        saves = self._world.saves
        if error is not None:
            saves.close_after(error)
            return
        if self._ended:
            saves.finish()
        else:
            _log.warning("the loop was left in step %d, which is not saved; job.stop() ends it with a save", self.step)
        saves.close()
        if self._owns_run:
            self.run.finish()


class JobState:
    """The arrays and nests of a job by name."""

    def __init__(self, parts: Mapping[str, Stateful]) -> None:
        self._trees = {name: part for name, part in parts.items() if isinstance(part, ArrayTree)}

    def __getitem__(self, name: str) -> Any:
        return self._tree(name).value

    def __setitem__(self, name: str, value: Any) -> None:
        self._tree(name).value = value

    def _tree(self, name: str) -> ArrayTree:
        try:
            return self._trees[name]
        except KeyError:
            known = ", ".join(sorted(self._trees)) or "none"
            raise InvalidArgument(f"the job has no arrays named {name!r}", hint=f"It has: {known}.") from None
