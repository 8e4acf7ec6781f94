"""A committed step is never trained again, so its points must be there whoever is killed right after the commit: a
rank, or its peer, whose death ends it, too. `--commits` says how many commits are followed by a kill.
"""

from pathlib import Path
from typing import Any

import pytest

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

pytestmark = pytest.mark.slow

_TRAIN = """
import os, signal, time
import numpy as np
import strata
from strata import CheckpointManager

folder, kills = os.environ["FOLDER"], int(os.environ["KILLS"])
run = strata.init()
with CheckpointManager(f"{folder}/checkpoints") as checkpoints:
    found = checkpoints.recover()
    step = found.info.step + 1 if found else 0
    while step < 40 * (kills + 1):
        run.gang.sum(np.zeros(1))
        run.log({"loss": 1.0 / (step + 1)}, step=step)
        if step % 20 == 19:
            checkpoints.save({"step": step}, step=step)
            mark = f"{folder}/killed-{step}"
            if step % 40 == 39 and run.rank == step // 40 % 2 and not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
        step += 1
"""


@pytest.fixture
def kills(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("--commits"))


def test_no_point_of_a_committed_step_is_lost_by_a_kill_right_after_it(tmp_path: Path, kills: int) -> None:
    script = tmp_path / "train.py"
    script.write_text(_TRAIN)
    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        task_id = nodes.submit(
            name="kills",
            type="script",
            entrypoint=("python", str(script)),
            worker_count=2,
            max_restarts=kills + 3,
            env={"FOLDER": str(tmp_path), "KILLS": str(kills)},
            working_dir=str(tmp_path),
        )
        task = nodes.wait_task(task_id, timeout_s=60 + 30 * kills)
        assert task.status is TaskStatus.COMPLETED, task.reason
        assert len(list(tmp_path.glob("killed-*"))) >= kills
        expected = set(range(40 * (kills + 1)))
        wait_for(lambda: all(steps == expected for steps in _steps(nodes, task_id)), 60, "every point of both ranks")


def _steps(nodes: Nodes, task_id: str) -> list[set[int]]:
    found: dict[str, Any] = nodes.get(f"/metrics/{task_id}?metric=loss&points=2000") or {"series": []}
    by_rank = {series["rank"]: set(series["steps"]) for series in found["series"]}
    return [by_rank.get(rank, set()) for rank in (0, 1)]
