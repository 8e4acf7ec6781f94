"""The optimizer of the demo: Adam with a warm-up, a cosine and a bound on the gradient, all of it in `state`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Adam", "scheduled"]

_MEAN, _SQUARE, _TINY = np.float32(0.9), np.float32(0.99), np.float32(1e-8)


def scheduled(rate: float, step: int, *, warmup: int, total: int) -> float:
    """The learning rate of a step: up to `rate` within the warm-up, then down to a tenth of it."""
    if step <= warmup:
        return rate * step / max(1, warmup)
    done = min(1.0, (step - warmup) / max(1, total - warmup))
    return rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


class Adam:
    """Changes the parameters in place. A gradient that is longer than 1 is made as short."""

    def __init__(self, params: NDArray[np.float32]) -> None:
        self.state: dict[str, Any] = {"mean": np.zeros_like(params), "square": np.zeros_like(params)}
        self._params = params

    def apply(self, gradient: NDArray[np.float64], step: int, rate: float) -> float:
        """One step down; returns how long the gradient was."""
        length = math.sqrt(float(np.square(gradient).sum()))
        gradient = (gradient * min(1.0, 1.0 / max(length, 1e-12))).astype(np.float32)
        mean, square = self.state["mean"], self.state["square"]
        mean += (1 - _MEAN) * (gradient - mean)
        square += (1 - _SQUARE) * (np.square(gradient) - square)
        unbiased = np.float32(rate * math.sqrt(1 - float(_SQUARE) ** step) / (1 - float(_MEAN) ** step))
        self._params -= unbiased * mean / (np.sqrt(square) + _TINY)
        return length
