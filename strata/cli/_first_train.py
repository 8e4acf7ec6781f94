"""A training script that goes on where it was killed. Written by `strata init`; change what you like.

python train.py                     alone, without a server
strata up                           the dashboard, in a second terminal
strata run --workers 2 train.py     two ranks: kill -9 one of them, and watch
"""

import argparse
import time

import numpy as np

import strata


def forward(model: dict[str, np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.tanh(x @ model["w1"] + model["b1"])
    return hidden, hidden @ model["w2"]


def gradients(model: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
    hidden, predicted = forward(model, x)
    error = predicted - y
    back = (error @ model["w2"].T) * (1 - hidden**2)
    return {"w1": x.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ error}, float((error**2).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    first = np.random.default_rng(0)
    model = {"w1": first.normal(size=(1, 64)), "b1": first.normal(size=64), "w2": 0.1 * first.normal(size=(64, 1))}

    # Restores the newest checkpoint, saves every 200 steps, and leaves when the task is asked to stop.
    with strata.training(model=model, total=options.steps, every=200, seed=0) as job:
        for step in job:
            x = np.random.uniform(-3, 3, size=(64, 1))  # each rank's own numbers, which go on after a restart
            mine, loss = gradients(model, x, np.sin(3 * x))
            for name, gradient in mine.items():
                model[name] -= options.lr * job.run.gang.sum(gradient) / (64 * job.run.world_size)
            job.log(loss=loss)
            if step % 200 == 0:
                print(f"rank {job.rank}, step {step}: loss {loss:.4f}")
            time.sleep(options.pause)


if __name__ == "__main__":
    main()
