"""A script for wandb against a real observatory: found by its labels, and gone on with after its last step."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until

SCRIPT = """
import numpy as np
import strata.wandb as wandb
run = wandb.init(project="p", id="again", resume="allow", tags=["x"], group="g", config={"lr": 0.1, "model": {"w": 3}})
for i in range(5):
    wandb.log({"loss": 5.0 - i - run.starting_step, "words": "hi", "image": wandb.Image(np.zeros((4, 4)))})
wandb.summary["best"] = 0.1
print(run.resumed, run.starting_step, run.url)
run.finish()
"""


@pytest.mark.slow
def test_a_script_for_wandb_goes_on_with_its_run(observatory: ObservatoryProcess) -> None:
    process = observatory
    environment = {**os.environ, "STRATA_DATA_DIR": str(process.data_dir)}

    def train() -> str:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert train() == f"False 0 {process.http}/ui/runs/again"
    assert train() == f"True 5 {process.http}/ui/runs/again"
    [run] = process.get("/api/runs", filter="tag:x and group:g and model.w = 3 and loss.min < 0")
    assert (run["latest_step"], run["project"], run["state"]) == (9, "p", "finished")
    told = process.get("/api/runs/again/summary")
    assert told["metrics"] == {"loss": {"last": -4.0, "min": -4.0, "max": 5.0}}
    assert told["values"]["best"] == 0.1
    wait_until(process.store_ready, "the store's start")

    def texts() -> Any:
        rows = process.get("/api/runs/again/texts")
        return rows if len(rows) == 20 else None

    assert {row["kind"] for row in wait_until(texts, "all texts in the store")} == {"text", "image"}
