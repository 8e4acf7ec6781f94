"""Ranks that torchrun started: after strata.init a CheckpointManager is its rank's, and they agree by the store."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager

_TRAIN = """
import numpy as np
import strata

run = strata.init(name="launched")
with strata.CheckpointManager("checkpoints") as checkpoints:
    assert checkpoints.recover() is None or run.place.attempt
    for step in (1, 2):
        checkpoints.save_async({"x": np.full(4, run.rank)}, step=10 * run.place.attempt + step)
    checkpoints.wait()
    found = checkpoints.recover()
print(found.info.step, found.state["x"][0])
"""


def _launch(folder: Path, rank: int, attempt: int) -> "subprocess.Popen[str]":
    launched = {
        "TORCHELASTIC_RUN_ID": "job",
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_RANK": str(rank),
        "STRATA_QUIET": "1",
    }
    command = [sys.executable, str(folder / "train.py")]
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **launched}, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_ranks_of_torchrun_save_one_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TRAIN)
    for attempt, last in ((0, 2), (1, 12)):
        ranks = [_launch(tmp_path, rank, attempt) for rank in range(2)]
        said = [rank.communicate(timeout=120)[0] for rank in ranks]
        assert said == [f"{last} 0\n", f"{last} 1\n"]
    with CheckpointManager(tmp_path / "checkpoints") as checkpoints:
        assert [info.step for info in checkpoints.list()] == [12, 11, 2, 1]
        assert np.array_equal(checkpoints.load(12, rank=1, world_size=2)["x"], np.full(4, 1))
