"""Processes of this host: found again by their tag, and gone when a stop returns."""

import os
import signal
import sys
import time
from pathlib import Path

from strata.launchers.base import LaunchSpec
from strata.launchers.local import LocalLauncher, pid_of
from tests.support.waiting import eventually


def test_stop_escalates_and_verifies(tmp_path: Path) -> None:
    launcher = LocalLauncher()
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    out = tmp_path / "out"
    tag = f"deaf-{os.getpid()}"
    spec = LaunchSpec(argv=(sys.executable, "-c", code), tag=tag, env=dict(os.environ), stdout=out)
    launcher.prepare(spec)
    handle = launcher.start(spec)
    eventually("it is up", lambda: out.exists() and "up" in out.read_text())
    assert launcher.adopt(tag) == handle
    assert launcher.describe(handle).text == f"pid {pid_of(handle)} runs"
    began = time.monotonic()
    assert launcher.stop(handle, 0.2).code == -signal.SIGKILL
    assert time.monotonic() - began < 50, "long before it would end by itself"
    assert launcher.adopt(tag) is None
