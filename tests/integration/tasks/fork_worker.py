"""One rank of the jobs in test_fork.py: `fork_worker.py FOLDER [--path PATH] [--until STEP] [--without STEP …]`. It
trains a mean with `strata.training`, and notes of each step what it read, its loss, and its model before and after.
Rows that FOLDER/poisoned.json names make a spike.

With --until it waits at that step until its folder holds a file named `go`. It learns nothing from the steps --without.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import strata
from strata.data import Loader

BATCH, EPOCHS, EVERY = 4, 2, 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--path", default="")
    parser.add_argument("--until", type=int, default=0)
    parser.add_argument("--without", type=int, nargs="+", default=[])
    options = parser.parse_args()
    run = strata.init(config={"lr": 0.1})
    model = {"mean": np.zeros(1)}
    loader = Loader(str(options.folder / "data" / "*.npz"), BATCH, seed=3)
    noted = options.folder / "poisoned.json"
    poisoned = json.loads(noted.read_text()) if noted.exists() else []
    path = options.path or None
    with (
        strata.training(model=model, loader=loader, epochs=EPOCHS, every=EVERY, path=path, keep_count=2) as job,
        (options.folder / f"{run.id}-{run.rank}.jsonl").open("a") as notes,
    ):
        for step, batch in job:
            if step in options.without:
                continue
            before = float(model["mean"][0])
            value = np.where(np.isin(batch["id"], poisoned), 1e9, batch["id"] % 7)
            total = run.gang.sum(np.array([value.sum(), float(len(value))]))
            loss = float(abs(total[0] / total[1] - before))
            model["mean"] += run.config["lr"] * (total[0] / total[1] - model["mean"])
            job.log(loss=loss)
            after = float(model["mean"][0])
            bits = {"loss": loss.hex(), "before": before.hex(), "mean": after.hex()}
            notes.write(json.dumps({"step": step, "ids": batch["id"].tolist(), **bits}) + "\n")
            notes.flush()
            while step == options.until and not (options.folder / "go").exists():
                time.sleep(0.02)
    sys.stdout.write(f"done after step {job.step}\n")


if __name__ == "__main__":
    main()
