"""Rehearses the README's two commands as a newcomer: a new clone, an empty HOME, nothing of this work tree installed.

Each command gets a clone and a HOME of its own, so both times are cold. Standard library only; prints both times.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# How this machine reaches its package index; everything else of the environment stays behind.
KEPT = re.compile(r"(?i)path|lang|term|.*_proxy|.*cert.*|.*ca_bundle|pip_(extra_)?index_url|npm_config_registry")
PORTS = (3000, 50051, 50052)
PAGE_DEADLINE_S = 900.0
STOP_DEADLINE_S = 60.0


class Failed(Exception):
    """The rehearsal did not go as the README says."""


@contextmanager
def clone() -> Iterator[tuple[Path, dict[str, str]]]:
    """HEAD and every uncommitted file that git would not ignore, with an environment of its own."""
    with tempfile.TemporaryDirectory(prefix="strata-fresh-") as folder:
        tree, home = Path(folder) / "strata", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(tree)], check=True)
        for name in _git_list("--modified", "--others", "--exclude-standard"):
            source, target = ROOT / name, tree / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
            else:
                target.unlink(missing_ok=True)
        env = {key: value for key, value in os.environ.items() if KEPT.fullmatch(key)}
        yield tree, env | {"HOME": str(home)}


def _git_list(*options: str) -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return [name for name in done.stdout.decode().split("\0") if name]


def rehearse_test() -> float:
    with clone() as (tree, env):
        start = time.monotonic()
        done = subprocess.run(["make", "test"], cwd=tree, env=env, check=False)
        if done.returncode != 0:
            raise Failed(f"`make test` ended with code {done.returncode}")
        return time.monotonic() - start


def rehearse_run() -> float:
    command = ["make", "run"]
    if any(_taken(port) for port in PORTS):
        sys.stdout.write(f"fresh: one of the ports {PORTS} is taken, so free ones are asked for\n")
        command.append("ARGS=--http-port 0 --grpc-port 0 --telemetry-port 0")
    with clone() as (tree, env):
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=tree, env=env, start_new_session=True)
        try:
            url = _wait_for_page(process, tree / ".strata" / "endpoints.json", start + PAGE_DEADLINE_S)
            taken = time.monotonic() - start
            sys.stdout.write(f"fresh: the page answers at {url}\n")
        finally:
            _stop(process)
        return taken


def _wait_for_page(process: subprocess.Popen[bytes], endpoints: Path, deadline: float) -> str:
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"`make run` ended by itself with code {process.returncode}")
        if endpoints.exists():
            url = str(json.loads(endpoints.read_text(encoding="utf-8"))["http"])
            if _is_page(url):
                return url
        time.sleep(0.2)
    raise Failed(f"`make run` showed no page within {PAGE_DEADLINE_S:g} s")


def _is_page(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own loopback address
            return answer.status == 200 and b"<script" in answer.read()
    except OSError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C reaches the whole group, as in a terminal; whatever is left after the deadline is a fault."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_DEADLINE_S
    while _group_lives(process) and time.monotonic() < deadline:
        time.sleep(0.1)
    if _group_lives(process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Failed(f"Ctrl-C left processes behind for {STOP_DEADLINE_S:g} s")


def _group_lives(process: subprocess.Popen[bytes]) -> bool:
    process.poll()  # reaps our own child: a zombie would count as alive
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> int:
    rehearsals = {"run": rehearse_run, "test": rehearse_test}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", choices=list(rehearsals), help="both when none is named")
    named = parser.parse_args().command
    wanted = [named] if named else list(rehearsals)
    # A shell's background job ignores Ctrl-C, and would hand that on to what it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        times = {name: rehearsals[name]() for name in wanted}
    except Failed as error:
        sys.stderr.write(f"fresh: {error}\n")
        return 1
    for name, seconds in times.items():
        sys.stdout.write(f"fresh: make {name}, cold: {seconds:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
