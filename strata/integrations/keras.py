"""Keras 3, on any backend: a callback that logs metrics, saves weights, optimizer and random seeds at the end of an
epoch, goes on from the newest of them, and stops when the task is asked to.

    strata_callback = StrataCallback()
    model.fit(x, y, epochs=20, initial_epoch=strata_callback.restore(model), callbacks=[strata_callback])
"""

from typing import Any

import numpy as np

from strata.errors import InvalidArgument, MissingExtra
from strata.worker.run import init

try:
    import keras
except ImportError as error:
    raise MissingExtra("keras", "keras") from error

__all__ = ["StrataCallback"]


class StrataCallback(keras.callbacks.Callback):  # type: ignore[misc]  # keras is not installed where types are checked
    """Logs what Keras measures, every `log_every` batches and at the end of each epoch, and saves `every` so many
    epochs (and before a stop) to `path`, by default the task's own folder or bucket. Keras can begin only whole epochs:
    give long ones `steps_per_epoch`. With `seed` every epoch has random numbers of its own, so that a resumed one
    shuffles alike."""

    def __init__(self, path: str | None = None, *, every: int = 1, log_every: int = 1, seed: int | None = None) -> None:
        super().__init__()
        if every < 1 or log_every < 1:
            raise InvalidArgument(f"every is {every}, log_every is {log_every}; both must be 1 or more")
        self._run = init()
        self._checkpoints = self._run.checkpoints(path)
        self._every = every
        self._log_every = log_every
        self._seed = seed
        self._step = 0

    def restore(self, model: Any) -> int:
        """Fills a built and compiled model from the newest good checkpoint; returns the epoch to go on with, 0 when
        nothing was saved."""
        if not model.built or getattr(model, "optimizer", None) is None:
            raise InvalidArgument(
                "the model is not built and compiled, so it has no weights and no optimizer yet",
                hint="Give it an Input layer (or call model.build), and model.compile(…) first.",
            )
        model.optimizer.build(model.trainable_variables)
        found = self._checkpoints.recover()
        if found is None:
            return 0
        variables, saved = _variables(model), found.state["variables"]
        if len(variables) != len(saved):
            raise InvalidArgument(f"the model has {len(variables)} variables, the checkpoint {len(saved)}")
        for name, variable in variables.items():
            if name not in saved:
                raise InvalidArgument(f"the checkpoint has no variable {name!r}", hint="Was the model changed?")
            variable.assign(saved[name])
        self._step = found.info.step
        return int(found.info.epoch)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self._seed is not None:
            keras.utils.set_random_seed((self._seed * 1_000_003 + epoch) % 2**32)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step += 1
        if self._step % self._log_every == 0:
            self._run.log(logs or {}, step=self._step)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._run.log({f"epoch/{name}": value for name, value in (logs or {}).items()}, step=self._step)
        self._run.progress(self._step, epoch=epoch + 1)
        stopping = self._run.should_stop()
        if stopping or (epoch + 1) % self._every == 0:
            state = {
                name: np.asarray(keras.ops.convert_to_numpy(each)) for name, each in _variables(self.model).items()
            }
            self._checkpoints.save_async({"variables": state}, self._step, epoch + 1)
        if stopping:
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        self._checkpoints.wait()


def _variables(model: Any) -> dict[str, Any]:
    """Weights, seeds of random layers and the optimizer's, by place and name: names alone need not be unique."""
    every = [*model.variables, *model.optimizer.variables]
    return {f"{number:04d}.{variable.path}": variable for number, variable in enumerate(every)}
