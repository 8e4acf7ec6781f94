"""Odd values from a training script and on the command line: each is taken, or refused with a sentence; never a
traceback, and the server stands.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster import Cluster

_HARNESS = """
import contextlib, io, json, sys
from strata.errors import StrataError
from tests.support.odd_values import ODD

broken, refused, taken = [], 0, 0

def attempt(what, call):
    global refused, taken
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            call()
        taken += 1
    except (StrataError, SystemExit) as error:
        fine = isinstance(error, SystemExit) and not error.code
        taken, refused = taken + fine, refused + (not fine)
        text = said.getvalue() + str(error)
        if not fine and not text.strip() or "Traceback" in text:
            broken.append(f"{what}: {error!r} {text[-300:]}")
    except BaseException as error:
        broken.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")
"""

_SCRIPT = """
import strata
for odd in ODD[::8]:
    run = None
    def start(**given):
        global run
        run = strata.init(project="odd", **given)
    attempt(f"config {odd.name}", lambda: start(name="plain", config={"x": odd.value}))
    if run is not None:
        if not isinstance(odd.value, list | dict):  # no keys, by Python's own word
            attempt(f"metric {odd.name}", lambda: run.log({odd.value: 1.0}, step=1))
        attempt(f"value {odd.name}", lambda: run.log({"m": odd.value}, step=1))
        attempt(f"step {odd.name}", lambda: run.log({"m": 1.0}, step=odd.value))
        attempt(f"finish {odd.name}", run.finish)
        run = None
    if isinstance(odd.value, str):
        attempt(f"name {odd.name}", lambda: start(name=odd.value))
        if run is not None:
            attempt(f"finish {odd.name}", run.finish)
sys.stdout.write(json.dumps({"broken": broken, "refused": refused, "taken": taken}))
"""

_COMMANDS = """
from strata.cli.main import run
folder = sys.argv[1]
words = [odd for odd in ODD if isinstance(odd.value, str) and "\\0" not in odd.value and len(odd.value) < 5000]
words = words[:: max(1, len(words) // 12)]
for odd in words:
    try:
        word = odd.value.encode(errors="surrogateescape").decode(errors="surrogateescape")
    except UnicodeError:
        continue  # the system's own exec refuses it
    for arguments in (
        ("run", "--detach", f"--name={word}", "train.py"), ("run", "--detach", f"--dataset={word}", "train.py"),
        ("logs", f"--task={word}"), ("logs", f"--search={word}"), ("logs", f"--level={word}"),
        ("tasks", "stop", word), ("checkpoints", "list", word), ("export", word),
    ):
        sys.argv = ["strata", *arguments, "--data-dir", folder]
        attempt(f"{arguments[:2]} {odd.name}", run)
sys.stdout.write(json.dumps({"broken": broken, "refused": refused, "taken": taken}))
"""


def outcome(script: str, cluster: Cluster, folder: Path) -> dict[str, object]:
    (folder / "train.py").write_text("print('hello')\n")
    root = Path(__file__).parents[3]
    environment = {**os.environ, "STRATA_QUIET": "1", "PYTHONPATH": str(root), "STRATA_DATA_DIR": str(cluster.folder)}
    command = [sys.executable, "-c", _HARNESS + script, str(cluster.folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=folder)
    assert ended.returncode == 0, ended.stderr[-2000:]
    found: dict[str, object] = json.loads(ended.stdout)
    return found


@pytest.mark.slow
def test_scripts_and_commands_take_or_refuse(tmp_path: Path) -> None:
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        script = outcome(_SCRIPT, cluster, tmp_path)
        assert script["broken"] == []
        assert script["taken"], "a script goes on: what is not sent is said and counted"
        commands = outcome(_COMMANDS, cluster, tmp_path)
        assert commands["broken"] == []
        assert commands["refused"]
        for path in ("/runs", "/api/tasks", "/api/logs", "/api/status", "/api/dashboard"):
            assert cluster.get(path) is not None
