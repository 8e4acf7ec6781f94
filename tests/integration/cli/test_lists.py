"""Lists of the cluster: what is old is said to be, and what nobody knows, as the coordinator is not heard, is no empty
list."""

import re
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
        for command in (("tasks",), ("tasks", "--json"), ("hosts",), ("workers",), ("checkpoints", "ls")):
            done = strata(*command, *folder)
            assert (done.returncode, done.stdout) == (1, ""), command
            assert "coordinator" in done.stderr


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
