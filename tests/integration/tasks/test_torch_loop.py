"""`strata.training` with torch: DDP and FSDP2, in tasks and under torchrun, killed and resumed with the losses of the
uninterrupted run, bit for bit. `STRATA_KILLS=20 pytest …` kills as often.
"""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from strata.checkpoint.manager import CheckpointManager
from strata.types.tasks import TaskStatus
from tests.support.loop_kills import (
    EXAMPLES,
    KILLS,
    losses_in,
    newest_step,
    output_of,
    train,
    train_through_kills,
)
from tests.support.nodes import Nodes, wait_for

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed (make test-torch)"),
]

_DDP = EXAMPLES / "train_loop_ddp.py"
_FSDP = EXAMPLES / "train_loop_fsdp.py"


def test_a_resilient_ddp_script_has_at_most_five_lines_of_strata() -> None:
    code = _DDP.read_text().partition('"""\n\n')[2]
    assert sum("strata" in line or "job" in line.replace("job.rank", "") for line in code.splitlines()) <= 5


@pytest.mark.timeout(600 + 90 * KILLS)
def test_ddp_goes_on_whatever_is_killed(tmp_path: Path) -> None:
    train_through_kills(tmp_path, _DDP, KILLS, pause_s=0.15, patience_s=300)


@pytest.mark.timeout(900)
def test_fsdp2_goes_on_and_its_model_is_read_whole(tmp_path: Path) -> None:
    import torch

    with Nodes(tmp_path, slots=2) as nodes:
        nodes.start()
        calm = train(nodes, _FSDP, 60)
        assert nodes.wait_task(calm, timeout_s=300).status is TaskStatus.COMPLETED, output_of(nodes, calm)
        task_id = train(nodes, _FSDP, 60, pause_s=0.1)
        wait_for(lambda: newest_step(nodes, task_id) >= 20, 300, "a checkpoint")
        os.kill(nodes.rank_pids(task_id)[1], signal.SIGKILL)
        task = nodes.wait_task(task_id, timeout_s=300)
        assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 2), task.reason
        assert losses_in(output_of(nodes, task_id)) == losses_in(output_of(nodes, calm))
        found = []
        for each in (calm, task_id):
            model = torch.nn.Sequential(torch.nn.Linear(20, 65), torch.nn.Tanh(), torch.nn.Linear(65, 1))
            optimizer = torch.optim.AdamW(model.parameters())
            with CheckpointManager(nodes.data_dir / "checkpoints" / each, rank=0, world_size=1) as checkpoints:
                checkpoints.load(into={"model": model, "optimizer": optimizer})
            found.append((model.state_dict(), optimizer.state_dict()["state"]))
    assert all(torch.equal(found[0][0][name], found[1][0][name]) for name in found[0][0])
    assert found[0][1][0]["exp_avg"].shape == (65, 20)
    assert torch.equal(found[0][1][0]["exp_avg"], found[1][1][0]["exp_avg"])


def _torchrun(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """With a store of their own, ranks that torchrun restarts do not find the addresses of dead ones in it, and hang
    (pytorch/pytorch#135712)."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "--max-restarts", "2", "--redirects", "3", "--log-dir", str(folder / "logs"), str(_DDP)]
    own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    environment = {**os.environ, **own_store, "STRATA_DATA_DIR": str(folder / "strata"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*command, "--steps", "60", "--every", "10", *arguments], env=environment, text=True)


def _printed(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.glob("logs/**/stdout.log"))


@pytest.mark.timeout(900)
def test_torchrun_starts_it_again_and_it_goes_on(tmp_path: Path) -> None:
    with _torchrun(tmp_path / "calm") as calm:
        assert calm.wait(300) == 0
    expected = losses_in(_printed(tmp_path / "calm"))
    assert len(expected) == 120
    with _torchrun(tmp_path / "killed", "--pause", "0.1") as killed:
        try:
            wait_for(lambda: (1, 25) in losses_in(_printed(tmp_path / "killed")), 300, "step 25")
            psutil.Process(killed.pid).children()[-1].kill()
            assert killed.wait(300) == 0
        finally:
            killed.terminate()  # torchrun ends its ranks
    assert losses_in(_printed(tmp_path / "killed")) == expected
