"""Fifty asynchronous saves in a process of their own: its memory does not grow."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys
import numpy as np
import psutil
from strata.checkpoint import CheckpointManager

state = {f"layer.{i}": np.zeros(1 << 18) for i in range(8)}
process = psutil.Process()
with CheckpointManager(sys.argv[1], keep_count=2) as manager:
    warm = 0
    for step in range(60):
        for array in state.values():
            array += 1
        manager.save_async(state, step=step)
        if step == 9:
            manager.wait()
            warm = process.memory_info().rss
    manager.wait()
    print(warm, process.memory_info().rss)
"""


def test_fifty_saves_leave_the_memory_flat(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "ckpt")],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=root,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    warm, end = map(int, done.stdout.split())
    assert end < warm * 1.02, f"grew from {warm} to {end} bytes"
