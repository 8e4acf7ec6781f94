"""The training loop under `srun`, with no cluster of Strata at all: a DDP script whose ranks a real Slurm started, is
killed and started again, with the losses of the uninterrupted run, bit for bit.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.loop_kills import EXAMPLES, losses_in, read_to
from tests.support.ports import free_ports
from tests.support.slurm import slurm

pytestmark = [
    pytest.mark.launchers,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("srun") is None, reason="srun is not installed (make test-launchers)"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed (make test-torch)"),
]

_STEPS = 60


@pytest.fixture
def commands() -> Iterator[dict[str, str]]:
    """The variables of a Slurm; in a short path, for its sockets."""
    with tempfile.TemporaryDirectory(prefix="strata-slurm-") as folder, slurm(Path(folder)) as environment:
        yield environment


def _srun(commands: dict[str, str], folder: Path, pause_s: float = 0.0) -> "subprocess.Popen[str]":
    """As a user's batch script says it: torch is told by Slurm's variables who it is."""
    script = f"{sys.executable} {EXAMPLES / 'train_loop_ddp.py'} --steps {_STEPS} --every 10 --pause {pause_s}"
    line = f"RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS exec {script}"
    environment = {
        **os.environ,
        **commands,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_ports(1)[0]),
        "OMP_NUM_THREADS": "1",
        "STRATA_DATA_DIR": str(folder),
    }
    command = ["srun", "--nodes=2", "--ntasks=2", "--kill-on-bad-exit", "sh", "-c", line]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ranks(folder: Path) -> list[psutil.Process]:
    """The processes of the script that works in this folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if line[:1] == [sys.executable] and process.environ().get("STRATA_DATA_DIR") == str(folder):
            found.append(process)
    assert len(found) == 2
    return found


def test_under_srun_it_goes_on_after_a_kill(commands: dict[str, str], tmp_path: Path) -> None:
    output, said = _srun(commands, tmp_path / "calm").communicate(timeout=600)
    expected = losses_in(output)
    assert len(expected) == 2 * _STEPS, said
    killed = _srun(commands, tmp_path / "killed", pause_s=0.1)
    text = read_to(killed, 25)
    for rank in _ranks(tmp_path / "killed"):
        rank.kill()
    text += killed.communicate(timeout=600)[0]
    rest, said = _srun(commands, tmp_path / "killed").communicate(timeout=600)
    assert "goes on after step " in said
    assert losses_in(text + rest) == expected
