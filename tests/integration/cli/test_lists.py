"""Lists of the cluster while the observatory does not hear the coordinator: what is old is said to be, and what nobody
knows is no empty list."""

from pathlib import Path

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
