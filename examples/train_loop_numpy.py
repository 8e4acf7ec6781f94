"""Data-parallel training in plain NumPy with the loop that resumes. Kill any process of it, at any time:

python examples/train_loop_numpy.py
strata run --workers 2 examples/train_loop_numpy.py
"""

import argparse
import time

import numpy as np

import strata


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    truth = np.random.default_rng(0).normal(size=20)
    model = {"weights": np.zeros(20), "speed": np.zeros(20)}

    with strata.training(model=model, total=options.steps, every=options.every, seed=0) as job:
        for step in job:
            x = np.random.normal(size=(16, 20))  # each rank's own numbers, which go on after a restart
            error = x @ (model["weights"] - truth) + 0.05 * np.random.normal(size=16)
            total = job.run.gang.sum(np.append(x.T @ error, error @ error))
            model["speed"] = 0.9 * model["speed"] - 1e-3 * total[:-1]
            model["weights"] = model["weights"] + model["speed"]
            job.log(loss=total[-1])
            print(f"rank {job.rank} step {step} loss {total[-1].hex()}", flush=True)
            time.sleep(options.pause)


if __name__ == "__main__":
    main()
