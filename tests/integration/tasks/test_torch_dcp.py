"""The FSDP2 example with DCP in Strata's store, as a task: killed, it goes on with the losses of an undisturbed run.
Needs torch.
"""

import importlib.util
import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.run_command import RunCommand

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(900),  # torch is imported six times, which takes half a minute each on a busy machine
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed (make test-torch)"),
]

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "train_torch_fsdp.py"


def test_a_killed_fsdp_task_ends_with_the_losses_of_a_calm_one(tmp_path: Path) -> None:
    arguments = ["--workers", "2", str(_SCRIPT), "--steps", "60", "--every", "10", "--pause"]
    with RunCommand(tmp_path / "calm", *arguments, "0") as calm:
        assert calm.wait(400) == 0, calm.output
    with RunCommand(tmp_path / "killed", *arguments, "0.1") as command:
        command.wait_checkpoint(10)
        os.kill(command.rank_pid(1), signal.SIGKILL)
        assert command.wait(400) == 0, command.output
    went_on = re.findall(r"rank \d of 2 goes on after step (\d+)", command.output)
    assert any(int(step) >= 10 for step in went_on), command.output
    assert _losses(command.output) == _losses(calm.output)


def _losses(output: str) -> list[tuple[str, str]]:
    found = sorted(re.findall(r"rank (\d) done, loss (\S+)", output))
    assert len(found) == 2, output
    return found
