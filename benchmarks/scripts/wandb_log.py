"""The same 50,000 calls with wandb in its offline mode."""

import os
import tempfile

import wandb

from benchmarks.measure import report, stopwatch

CALLS = 50_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WANDB_SILENT"] = "true"
        run = wandb.init(project="bench", mode="offline", dir=folder)
        with stopwatch() as watch:
            for step in range(CALLS):
                run.log({"loss": 0.5, "lr": 0.1}, step=step)
        with stopwatch() as closing:
            run.finish()
        report(watch.values(us_per_call=watch.wall_s / CALLS * 1e6, finish_s=closing.wall_s))


if __name__ == "__main__":
    main()
