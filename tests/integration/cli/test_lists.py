"""Lists of the cluster: what is old is said to be, and what nobody knows, as the coordinator is not heard, is no empty
list."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.nodes import Nodes
from tests.support.waiting import eventually


def test_a_list_says_when_the_coordinator_is_not_heard(tmp_path: Path) -> None:
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator", "observatory")
        folder = ("--data-dir", str(nodes.data_dir))
        nodes.submit(name="waits", worker_count=9, entrypoint=("true",))
        eventually("the task", lambda: "waits-" in strata("tasks", *folder).stdout)
        nodes.kill("coordinator")
        eventually("that it is away", lambda: "this was known last" in strata("tasks", *folder).stderr)
        assert "waits-" in strata("tasks", *folder).stdout
        nodes.kill("observatory")
        nodes.start("observatory")
        lists = [
            ("tasks",),
            ("tasks", "--json"),
            ("hosts",),
            ("workers",),
            ("checkpoints", "ls"),
            ("checkpoints", "verify"),
        ]
        commands = [*lists, ("why", "waits-1"), ("logs", "--task", "waits-1")]
        with ThreadPoolExecutor() as pool:  # each waits for it
            ends = list(pool.map(lambda command: strata(*command, *folder), commands))
        for command, done in zip(commands, ends, strict=True):
            assert (done.returncode, done.stdout) == (1, ""), command
            assert f"waiting for the coordinator at {nodes.address}\n" in done.stderr, command
            assert f"has not heard the coordinator at {nodes.address} yet" in done.stderr, command


def test_a_list_waits_for_a_coordinator_that_is_about_to_be_heard(tmp_path: Path) -> None:
    """As right after `strata up`."""
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator")
        nodes.submit(name="waits", worker_count=9, entrypoint=("true",))
        os.kill(nodes.pid("coordinator"), signal.SIGSTOP)
        nodes.start("observatory")
        command = [sys.executable, "-m", "strata", "tasks", "--data-dir", str(nodes.data_dir)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
            assert asking.stderr is not None
            assert asking.stderr.readline() == f"waiting for the coordinator at {nodes.address}\n"
            os.kill(nodes.pid("coordinator"), signal.SIGCONT)
            listed, said = asking.communicate(timeout=240)
        assert (asking.returncode, said) == (0, "")
        assert "waits-" in listed


def test_the_pid_of_a_worker_that_failed_is_not_one_to_kill(tmp_path: Path) -> None:
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        folder = ("--data-dir", str(nodes.data_dir))
        (tmp_path / "ends.py").write_text(
            "import os, strata\nstrata.init()\nprint(os.getpid(), flush=True)\nos._exit(3)"
        )
        task = nodes.wait_task(
            nodes.submit(name="ends", entrypoint=("python", str(tmp_path / "ends.py")), max_restarts=0)
        )
        assert task.status is TaskStatus.FAILED
        row = eventually(
            "the worker that failed",
            lambda: next((line for line in strata("workers", *folder).stdout.splitlines() if " failed " in line), ""),
        )
        assert re.search(r" was \d+ *$", row), row
