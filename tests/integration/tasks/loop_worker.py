"""The loop inside an elastic function, in plain NumPy, for tests: `python loop_worker.py STEPS PAUSE_S`."""

import os
import sys
import time
from typing import Any

import numpy as np

import strata


def main(steps: int, pause_s: float) -> None:
    model = {"weights": np.zeros(16)}

    @strata.elastic
    def train(world: Any) -> None:
        with strata.training(model=model, total=steps, every=10) as job:
            sys.stdout.write(f"pid {os.getpid()} world {world.number} after {job.step}\n")
            for step in job:
                x = np.random.default_rng([step, job.rank]).normal(size=16)
                total = job.run.gang.sum(x - 0.1 * model["weights"])
                model["weights"] = model["weights"] + 0.01 * total
                job.log(loss=float(total[0]))
                sys.stdout.write(f"rank {job.rank} step {step} loss {float(total[0]).hex()}\n")
                sys.stdout.flush()
                time.sleep(pause_s)

    train()
    strata.finish()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
