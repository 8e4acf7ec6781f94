"""A rank whose peer died says so in one line; every other error is told as ever. Real interpreters."""

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import os, sys
from strata.errors import BarrierBroken, BarrierExpired, PeerLost
from strata.worker import excepthook
excepthook._WAIT_S = 0.0
excepthook.watch_for_dead_peers(lambda: print("delivered"))
raise {error}
"""


def _run(error: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", _SCRIPT.format(error=error)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=dict(os.environ))


@pytest.mark.parametrize("error", ["PeerLost('rank 1 is gone')", "BarrierBroken('rank 1 is gone')"])
def test_a_dead_peer_is_one_line(error: str) -> None:
    done = _run(error)
    assert (done.returncode, done.stdout) == (75, "delivered\n")
    assert done.stderr == "strata: rank 1 is gone; this rank ends and is started anew from the last checkpoint\n"


@pytest.mark.parametrize("error", ["ValueError('mine')", "BarrierExpired('nobody came')"])
def test_every_other_error_keeps_its_traceback(error: str) -> None:
    done = _run(error)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
