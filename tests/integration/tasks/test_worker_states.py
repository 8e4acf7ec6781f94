"""While a rank saves it is shown as checkpointing, while it loads as recovering, and else as active."""

from pathlib import Path

import pytest

from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for

pytestmark = pytest.mark.slow

_TRAIN = """
import time
from pathlib import Path
import strata

def shown(name):
    while not Path("shown", name).exists():
        time.sleep(0.05)

run = strata.init()
run.log({"loss": 1.0}, step=1)
shown("active-1")
checkpoints = strata.CheckpointManager("checkpoints", before_vote=lambda step: shown("checkpointing-1"))
checkpoints.save(b"x" * 1000, step=1)
run.log({"loss": 1.0}, step=2)
shown("active-2")
checkpoints.load(1, progress=lambda *_: shown("recovering-1"))
checkpoints.close()
run.finish()
"""


def test_saving_and_loading_are_shown(tmp_path: Path) -> None:
    """The script goes on when each was seen."""
    (tmp_path / "train.py").write_text(_TRAIN)
    (tmp_path / "shown").mkdir()
    with Nodes(tmp_path, slots=1) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        task_id = nodes.submit(
            name="states", entrypoint=("python", "train.py"), worker_count=1, working_dir=str(tmp_path)
        )
        seen: list[str] = []

        def ended() -> bool:
            for worker in nodes.get("/api/workers") or []:
                if worker["id"] == f"{task_id}-0" and (not seen or seen[-1] != worker["status"]):
                    seen.append(worker["status"])
                    (tmp_path / "shown" / f"{seen[-1]}-{seen.count(seen[-1])}").touch()
            return nodes.task(task_id).status.final

        wait_for(ended, 120, "the task's end")
        assert nodes.task(task_id).status is TaskStatus.COMPLETED, nodes.task(task_id).reason
        shown = [status for status in seen if status in ("active", "checkpointing", "recovering")]
        assert shown[:4] == ["active", "checkpointing", "active", "recovering"], seen
