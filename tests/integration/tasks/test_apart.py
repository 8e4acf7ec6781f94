"""Hosts that keep checkpoints in folders of their own: a task over both is refused when it is submitted, or at the
latest before its first step; one that was queued before waits for a host that shares; and one that has saved on one of
them does not begin anew on the other.
"""

from pathlib import Path

import pytest

from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.hosts import STEPS, Hosts
from tests.support.nodes import wait_for

_SAVES = """
import sys, time, numpy, strata
run = strata.init()
with run.checkpoints() as checkpoints:
    found = checkpoints.recover()
    step = found.info.step if found else 0
    with open(sys.argv[1], "a") as starts:
        starts.write(f"{step}\\n")
    while not run.should_stop():
        step += 1
        checkpoints.save({"step": numpy.array([step])}, step=step, epoch=0)
        time.sleep(0.1)
run.finish()
"""


class Apart(Hosts):
    """Each host has the folder that an agent has by default: in its data folder."""

    def _clean(self) -> dict[str, str]:
        return {**super()._clean(), "STRATA_CHECKPOINT_BUCKET": ""}


@pytest.mark.slow
def test_a_script_that_will_save_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """When it is submitted. Where the hosts come later it waits, and says for what."""
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    with Apart(tmp_path) as hosts:
        hosts.start("coordinator")
        command = (
            "run",
            "--detach",
            "--data-dir",
            str(hosts.data_dir),
            "-w",
            "4",
            str(script),
            "1",
            "0",
            str(tmp_path),
        )
        task_id = strata(*command).stdout.strip()
        for name in ("a", "b"):
            hosts.start_host(name)
        said = "keep checkpoints in folders of their own: set STRATA_CHECKPOINT_BUCKET"
        wait_for(lambda: said in hosts.task(task_id).reason, 60, "for which hosts it waits")
        assert (hosts.task(task_id).status, hosts.task(task_id).attempt) == (TaskStatus.QUEUED, 0)
        refused = strata(*command)
        assert refused.returncode == 1
        assert said in refused.stderr
        assert len(hosts.tasks().list()) == 1
        assert hosts.noted(0) == []
        hosts.start_host("c", slots=4)
        assert hosts.wait_task(task_id).status is TaskStatus.COMPLETED


@pytest.mark.slow
def test_a_task_over_hosts_that_share_no_folder_says_what_to_set(tmp_path: Path) -> None:
    with Apart(tmp_path) as hosts:
        hosts.start("coordinator")
        hosts.start_host("a")
        hosts.start_host("b")
        task = hosts.wait_task(hosts.submit_steps(0.0, workers=4))
        assert (task.status, task.attempt) == (TaskStatus.FAILED, 1)
        assert "keep checkpoints in folders of their own: set STRATA_CHECKPOINT_BUCKET" in task.reason
        assert hosts.noted(0) == []


@pytest.mark.slow
def test_a_task_that_has_saved_waits_for_a_host_that_sees_it(tmp_path: Path) -> None:
    with Apart(tmp_path) as hosts:
        hosts.start("coordinator")
        hosts.start_host("a", slots=2)
        script = tmp_path / "saves.py"
        script.write_text(_SAVES)
        task_id = hosts.submit(name="saves", entrypoint=("python", str(script), str(tmp_path / "starts")))
        wait_for(lambda: (hosts.task(task_id).saved_step or 0) > 0, 60, "a checkpoint")
        b = hosts.start_host("b", slots=2)
        hosts.kill_hosts("a")

        def told() -> bool:
            return f"its checkpoints are in a folder that {b} does not share" in hosts.task(task_id).reason

        wait_for(told, 60, "that it waits, and why")
        hosts.start_host("a", slots=2)
        starts = wait_for(lambda: (tmp_path / "starts").read_text().split()[1:], 60, "the next attempt")
        assert int(starts[0]) > 0, "it began anew"
        hosts.tasks().stop(task_id)
        assert hosts.wait_task(task_id).status is TaskStatus.STOPPED
        hosts.kill_hosts("a")
        hosts.tasks().resume(task_id)
        wait_for(told, 60, "that it waits after a resume, too")
        hosts.start_host("a", slots=2)
        resumed = wait_for(lambda: (tmp_path / "starts").read_text().split()[2:], 60, "the attempt after that")
        assert int(resumed[0]) > int(starts[0]), "it began anew"
