"""The same five lines with wandb, in its offline mode: nothing is sent."""

import os
import tempfile

os.environ["WANDB_SILENT"] = "true"

import wandb  # the environment comes first, as in a shell

with tempfile.TemporaryDirectory() as folder:
    run = wandb.init(project="bench", mode="offline", dir=folder)
    for step in range(100):
        run.log({"loss": 1 / (step + 1)}, step=step)
    run.finish()
