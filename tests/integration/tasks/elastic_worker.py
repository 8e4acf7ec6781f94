"""An elastic training in plain NumPy for tests: `python elastic_worker.py STEPS PAUSE_S EVERY [RANK]`. `expected` is
what it must end with, whatever died on the way. A RANK that is named waits for ever in the first world, before its
sixth step.
"""

import hashlib
import os
import signal
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import strata

_SIZE = 64


class Model:
    """Weights with momentum, and a generator of each rank's own noise."""

    def __init__(self) -> None:
        self.weights = np.zeros(_SIZE)
        self.speed = np.zeros(_SIZE)

    def gradient(self, step: int, rank: int) -> NDArray[np.float64]:
        batch = np.random.default_rng([step, rank]).normal(size=(8, _SIZE))
        return np.asarray(batch.T @ (batch @ self.weights - batch.sum(axis=1)))

    def apply(self, gradient: NDArray[np.float64]) -> None:
        self.speed = 0.9 * self.speed - 1e-3 * gradient
        self.weights = self.weights + self.speed

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.weights, "speed": self.speed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights, self.speed = np.array(state["weights"]), np.array(state["speed"])

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.weights.tobytes() + self.speed.tobytes()).hexdigest()[:16]


def expected(steps: int, num_ranks: int) -> str:
    model = Model()
    for step in range(steps):
        total = model.gradient(step, 0)
        for rank in range(1, num_ranks):
            total = total + model.gradient(step, rank)
        model.apply(total)
    return model.digest


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(steps: int, pause_s: float, every: int, waits: int = -1) -> None:
    model = Model()

    @strata.elastic(every=every)
    def train(world: Any) -> None:
        state = world.restore(model=model)
        _say(f"pid {os.getpid()} world {world.number}: after step {state.step} from {state.source}")
        for step in range(state.step, steps):
            if (world.number, step, world.rank) == (0, 5, waits):
                signal.pause()
            model.apply(world.run.gang.sum(model.gradient(step, world.rank)))
            world.commit(step + 1)
            _say(f"step {step + 1}")
            world.run.log({"weight": float(model.weights[0])}, step=step + 1)
            time.sleep(pause_s)
            if strata.should_stop():
                return

    train()
    _say(f"done with {model.digest}")
    strata.finish()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), *map(int, sys.argv[4:]))
