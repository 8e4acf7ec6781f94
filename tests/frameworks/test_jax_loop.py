"""`strata.training` with JAX: alone and over two processes that share their arrays, killed, with equal losses."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.loop_kills import EXAMPLES, losses_in, read_to, train_through_kills

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]

_SCRIPT = EXAMPLES / "train_loop_jax.py"


def _alone(folder: Path, pause_s: float = 0.0) -> "subprocess.Popen[str]":
    command = [sys.executable, str(_SCRIPT), "--steps", "40", "--every", "10", "--pause", str(pause_s)]
    environment = {**os.environ, "STRATA_DATA_DIR": str(folder / "strata"), "STRATA_QUIET": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_alone_it_goes_on_after_a_kill_and_after_a_polite_request(tmp_path: Path) -> None:
    expected = losses_in(_alone(tmp_path / "calm").communicate(timeout=300)[0])
    assert len(expected) == 40
    text = ""
    for step, number in ((17, signal.SIGKILL), (25, signal.SIGTERM)):
        process = _alone(tmp_path / "killed", 0.05)
        text += read_to(process, step)
        process.send_signal(number)
        text += process.communicate(timeout=300)[0]
    rest, said = _alone(tmp_path / "killed").communicate(timeout=300)
    assert "goes on after step " in said
    assert losses_in(text + rest) == expected


def test_two_processes_killed_in_turn_with_all_around_them(tmp_path: Path) -> None:
    """A rank, the agent, the coordinator, then all of it."""
    train_through_kills(tmp_path, _SCRIPT, 4, pause_s=0.15, patience_s=400)
