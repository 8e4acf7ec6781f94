"""Keras 3 with Strata's callback, as a task: killed, it goes on at the last epoch with the losses of a calm run."""

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
    pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed"),
]

_SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "train_keras.py"


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_killed_training_ends_with_the_losses_of_a_calm_one(tmp_path: Path, backend: str) -> None:
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    environment = {"KERAS_BACKEND": backend}
    with RunCommand(tmp_path / "calm", str(_SCRIPT), "--epochs", "12", environment=environment) as calm:
        assert calm.wait(500) == 0, calm.output
    arguments = [str(_SCRIPT), "--epochs", "12", "--pause", "0.5"]
    with RunCommand(tmp_path / "killed", *arguments, environment=environment) as command:
        command.wait_checkpoint(32, within_s=400)
        os.kill(command.rank_pid(0), signal.SIGKILL)
        assert command.wait(500) == 0, command.output
    went_on = [int(epoch) for epoch in re.findall(r"goes on at epoch (\d+)", command.output)]
    assert went_on[0] == 0
    assert went_on[1] >= 2
    assert _losses(command.output) == _losses(calm.output)


def _losses(output: str) -> str:
    found = re.search(r"done, losses (\[.*\])", output)
    assert found, output
    return found[1]
