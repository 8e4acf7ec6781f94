"""The example with the SDK, alone: a second of real training. With workers that are killed: test_run_kills.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "train_numpy.py"
_DONE = re.compile(r"done: loss ([\d.]+) after (\d+) steps, weights \w+")


def test_it_trains_alone_without_any_server(tmp_path: Path) -> None:
    environment = {**os.environ, "STRATA_DATA_DIR": str(tmp_path / "strata")}
    command = [sys.executable, str(_SCRIPT), "--data", str(tmp_path / "data"), "--epochs", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    found = _DONE.search(done.stdout)
    assert found, done.stdout
    assert float(found[1]) < 0.1
    assert found[2] == "375"
