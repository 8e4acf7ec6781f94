"""A real Ray head on this machine that asks for a token, in a folder of its own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil

from tests.support.nodes import wait_for

__all__ = ["TOKEN", "ray_head"]

TOKEN = "a-token-of-the-tests-that-is-long-enough-for-ray"


_TRIES = 4  # Ray gives its own node half a minute to start, which is not enough on a busy machine


@contextlib.contextmanager
def ray_head(folder: Path, cpus: int = 4) -> Iterator[str]:
    """Yields its address. Whoever joins needs RAY_AUTH_TOKEN."""
    for number in range(_TRIES):
        own = folder / str(number)
        own.mkdir()
        head = _start(own, cpus)
        try:
            wait_for(partial(_has_settled, own, head), 180, "a Ray head")
            if head.poll() is None:
                yield _address(own)
                return
        finally:
            _end(head)
    raise AssertionError((own / "head.log").read_text())


def _start(folder: Path, cpus: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", f"--num-cpus={cpus}", "--port=0"]
    command += ["--disable-usage-stats", "--include-dashboard=false", "--object-store-memory=100000000"]
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    with (folder / "head.log").open("wb") as log:
        return subprocess.Popen([*command, f"--temp-dir={folder}", "--block"], stdout=log, stderr=log, env=environment)


def _end(head: "subprocess.Popen[bytes]") -> None:
    if head.poll() is not None:  # by itself, and with all that it had started
        return
    family = psutil.Process(head.pid).children(recursive=True)
    head.send_signal(signal.SIGTERM)
    try:
        head.wait(30)
    except subprocess.TimeoutExpired:  # on a busy machine it takes its time
        head.kill()
        head.wait()
    _, alive = psutil.wait_procs(family, 10)
    for process in alive:  # `ray stop` would end every Ray of this machine
        process.kill()
    psutil.wait_procs(alive, 10)


def _has_settled(folder: Path, head: "subprocess.Popen[bytes]") -> bool:
    """It serves, or has given up."""
    return bool(_address(folder)) or head.poll() is not None


def _address(folder: Path) -> str:
    file = folder / "ray_current_cluster"
    return file.read_text().strip() if file.exists() else ""
