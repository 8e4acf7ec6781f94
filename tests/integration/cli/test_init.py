"""`strata init` as a newcomer uses it: the script runs alone and resumes, and runs on two workers of which one is
killed.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster import strata
from tests.support.run_command import RunCommand
from tests.support.waiting import eventually


def test_a_script_is_never_overwritten(tmp_path: Path) -> None:
    assert strata("init", str(tmp_path / "new")).returncode == 0
    again = strata("init", str(tmp_path / "new"))
    assert again.returncode == 1
    assert again.stderr.strip().endswith("train.py is there already. Give another folder: strata init FOLDER.")


@pytest.mark.slow
def test_it_runs_alone_and_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    strata("init", str(tmp_path))
    command = [sys.executable, "train.py", "--steps", "600"]
    out = tmp_path / "out"
    with out.open("wb") as file, subprocess.Popen([*command, "--pause", "0.02"], cwd=tmp_path, stdout=file) as process:
        saved = tmp_path.rglob("COMMIT.json")
        eventually("a checkpoint", lambda: any(saved) or any(tmp_path.rglob("COMMIT.json")), within_s=120)
        process.kill()
    done = subprocess.run([*command, "--pause", "0"], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "rank 0, step 600: loss " in done.stdout
    assert "rank 0, step 0: " not in done.stdout


@pytest.mark.slow
def test_two_workers_outlive_a_kill(tmp_path: Path) -> None:
    strata("init", str(tmp_path))
    script = str(tmp_path / "train.py")
    with RunCommand(tmp_path, "--workers", "2", script, "--steps", "800", "--pause", "0.005") as command:
        command.wait_checkpoint(200)
        os.kill(command.rank_pid(1), signal.SIGKILL)
        assert command.wait(240) == 0, command.output
    assert "was killed by signal 9 (SIGKILL)" in command.output
    assert "rank 0, step 800: loss " in command.output
