"""A small model in NumPy: two layers, for numbers in and a class or a number out. All its state is arrays, all its
arithmetic is float64 in a fixed order, so the same data gives the same bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.data.table.columns import Columns, num_rows
from strata.errors import DataError, InvalidArgument

__all__ = ["Model", "Scheme", "learn_scheme"]

Vector = NDArray[np.float64]

_MAX_CLASSES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a dataset's columns become numbers. `num_classes` 0 means that the target is a quantity."""

    features: tuple[str, ...]
    target: str
    num_classes: int
    mean: Vector
    scale: Vector

    def inputs(self, batch: Columns) -> Vector:
        return (_matrix(batch, self.features) - self.mean) / self.scale

    def targets(self, batch: Columns) -> Vector:
        values = batch[self.target].astype(np.float64)
        if self.num_classes and len(values) and not (values.min() >= 0 and values.max() < self.num_classes):
            bad = values[(values < 0) | (values >= self.num_classes)][0]
            raise DataError(
                f"column {self.target!r} holds the class {bad:g}, outside 0…{self.num_classes - 1}",
                hint="Say how many classes there are with num_classes in the task's config.",
            )
        return values


def learn_scheme(sample: Columns, columns: list[str], config: dict[str, Any]) -> Scheme:
    """From a first look at the data, the same on every rank: the target is `label`, or else the last column; all other
    columns of numbers are features; whole numbers from 0 on are classes."""
    target = str(config.get("target") or ("label" if "label" in columns else columns[-1]))
    if target not in sample or not _is_number(sample[target]) or sample[target].ndim != 1:
        raise DataError(f"the target column {target!r} does not hold one number per row")
    features = tuple(name for name in columns if name != target and name in sample and _is_number(sample[name]))
    if not features:
        raise DataError(f"there is no column of numbers to learn from beside {target!r}: {', '.join(columns)}")
    matrix = _matrix(sample, features)
    scale = matrix.std(axis=0)
    given = int(config.get("num_classes", 0))
    return Scheme(
        features=features,
        target=target,
        num_classes=given or _classes(sample[target]),
        mean=matrix.mean(axis=0),
        scale=np.where(scale > 0, scale, 1.0),
    )


def _is_number(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iufb"


def _matrix(batch: Columns, names: tuple[str, ...]) -> Vector:
    rows = num_rows(batch)
    return np.concatenate([batch[name].reshape(rows, -1).astype(np.float64) for name in names], axis=1)


def _classes(values: NDArray[Any]) -> int:
    if values.dtype.kind not in "iub" or values.min() < 0:
        return 0
    top = int(values.max())
    return top + 1 if top < _MAX_CLASSES and top + 1 <= max(2, len(values)) else 0


class Model:
    """`gradient` is a sum over the samples, not a mean: so that it can be added over ranks with uneven batches."""

    def __init__(self, scheme: Scheme, hidden: int, seed: int) -> None:
        if not 1 <= hidden <= 65_536:
            raise InvalidArgument(f"hidden_size is {hidden}, it must be between 1 and 65536")
        random = np.random.default_rng(seed)
        inputs, outputs = len(scheme.mean), scheme.num_classes or 1
        self._scheme = scheme
        self.params: dict[str, Vector] = {
            "hidden/weight": random.normal(0, 1 / np.sqrt(inputs), (inputs, hidden)),
            "hidden/bias": np.zeros(hidden),
            "output/weight": random.normal(0, 1 / np.sqrt(hidden), (hidden, outputs)),
            "output/bias": np.zeros(outputs),
        }
        self.velocity: dict[str, Vector] = {name: np.zeros_like(value) for name, value in self.params.items()}

    def gradient(self, batch: Columns) -> tuple[Vector, float, float]:
        """(gradient of all parameters as one vector, loss, number of right answers), each summed over the batch."""
        if not num_rows(batch):
            return np.zeros(sum(value.size for value in self.params.values())), 0.0, 0.0
        inputs, targets = self._scheme.inputs(batch), self._scheme.targets(batch)
        p = self.params
        hidden = np.tanh(inputs @ p["hidden/weight"] + p["hidden/bias"])
        output = hidden @ p["output/weight"] + p["output/bias"]
        error, loss, right = self._judge(output, targets)
        back = (error @ p["output/weight"].T) * (1 - hidden**2)
        parts = (inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0))
        return np.concatenate([part.ravel() for part in parts]), loss, right

    def _judge(self, output: Vector, targets: Vector) -> tuple[Vector, float, float]:
        if not self._scheme.num_classes:
            error = output[:, 0] - targets
            return error[:, None], float(0.5 * (error**2).sum()), 0.0
        classes = targets.astype(np.int64)
        rows = np.arange(len(classes))
        shifted = output - output.max(axis=1, keepdims=True)
        odds = np.exp(shifted)
        odds /= odds.sum(axis=1, keepdims=True)
        loss = float(-np.log(np.maximum(odds[rows, classes], 1e-300)).sum())
        right = float((output.argmax(axis=1) == classes).sum())
        odds[rows, classes] -= 1.0
        return odds, loss, right

    def apply(self, gradient: Vector, learning_rate: float, momentum: float) -> None:
        """One step down the mean gradient."""
        start = 0
        for name, value in self.params.items():
            part = gradient[start : start + value.size].reshape(value.shape)
            self.velocity[name] = momentum * self.velocity[name] + part
            self.params[name] = value - learning_rate * self.velocity[name]
            start += value.size

    def state(self) -> dict[str, Any]:
        return {"params": dict(self.params), "velocity": dict(self.velocity)}

    def load(self, state: dict[str, Any]) -> None:
        for kind, into in (("params", self.params), ("velocity", self.velocity)):
            for name, value in into.items():
                array = np.array(state[kind][name], dtype=np.float64)
                if array.shape != value.shape:
                    raise InvalidArgument(f"the checkpoint's {name} has shape {array.shape}, the model's {value.shape}")
                into[name] = array
