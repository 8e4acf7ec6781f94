"""`strata chaos` on a cluster of its own: every drill is run, and what it promises holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strata.cli.drills import DRILLS, SIZE_DRILLS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def test_every_drill_passes_on_a_fresh_cluster(tmp_path: Path) -> None:
    """A worker and each part killed, a worker that hangs, a notice, a host that comes and goes."""
    done = subprocess.run(
        [sys.executable, "-m", "strata", "chaos", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1100,
        env={**os.environ, "COLUMNS": "300"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if " pass " in line]
    assert [row.split("  ")[0].strip() for row in rows] == [drill.name for drill in (*DRILLS, *SIZE_DRILLS)]
