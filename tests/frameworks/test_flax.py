"""Flax over two JAX processes, as a task: killed, it ends with the losses of a calm run."""

import importlib.util
import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.run_command import RunCommand

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(importlib.util.find_spec("flax") is None, reason="flax is not installed"),
]

_SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "train_flax.py"


def test_a_killed_training_ends_with_the_losses_of_a_calm_one(tmp_path: Path) -> None:
    arguments = ["--workers", "2", str(_SCRIPT), "--steps", "40", "--every", "10", "--pause"]
    with RunCommand(tmp_path / "calm", *arguments, "0") as calm:
        assert calm.wait(500) == 0, calm.output
    with RunCommand(tmp_path / "killed", *arguments, "0.2") as command:
        command.wait_checkpoint(10, within_s=400)
        os.kill(command.rank_pid(1), signal.SIGKILL)
        assert command.wait(500) == 0, command.output
    assert any(int(step) >= 10 for step in re.findall(r"goes on after step (\d+)", command.output)), command.output
    assert _losses(command.output) == _losses(calm.output)


def _losses(output: str) -> list[tuple[str, str]]:
    found = sorted(re.findall(r"process (\d) done, loss (\S+)", output))
    assert len(found) == 2, output
    return found
