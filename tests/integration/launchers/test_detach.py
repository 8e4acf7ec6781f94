"""`strata run --detach` through every launcher, on a cluster that stands: the command is gone, its agents train on and
end with the task. A Slurm job that hits its time limit is queued again and goes on, and no step is lost.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.hosts import STEPS, Hosts, finished_steps
from tests.support.launchers import SYSTEMS, System, system
from tests.support.nodes import wait_for
from tests.support.run_command import leftovers

pytestmark = [pytest.mark.launchers, pytest.mark.timeout(1200)]  # whole clusters, on a busy machine


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        yield hosts


def _detach(hosts: Hosts, there: System, *flags: str, total: int, pause_s: float) -> str:
    """Submits `STEPS`, and returns the task's id, which is all that the command writes to its output."""
    script = hosts.data_dir.parent / "steps.py"
    script.write_text(STEPS)
    arguments = (str(script), str(total), str(pause_s), str(script.parent))
    given = (*there.flags, "-w", "2", *flags, *arguments)
    done = strata("run", "--detach", "--data-dir", str(hosts.data_dir), *given, **there.environment)
    assert done.returncode == 0, done.stderr
    task_id = done.stdout.strip()
    assert f"`strata tasks stop {task_id}` ends it" in done.stderr
    return task_id


def _agents(hosts: Hosts) -> list[str]:
    return [agent.agent_id for agent in hosts.records().agents.values() if agent.alive]


def _jobs(environment: dict[str, str]) -> str:
    command = ("squeue", "--noheader", "--states=all", "--format=%i %T %r")
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}).stdout


def _lines_with(word: str) -> list[str]:
    """The command lines of this machine that hold it."""
    lines = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return [line for line in lines if word in line]


@pytest.mark.parametrize("name", SYSTEMS)
def test_agents_outlive_the_command_and_end_with_the_task(hosts: Hosts, name: str) -> None:
    with system(name) as there:
        task_id = _detach(hosts, there, total=60, pause_s=0.05)
        wait_for(lambda: hosts.noted(0), 240, "a first step")
        assert not _lines_with((hosts.data_dir / "token").read_text().strip()), "`ps` shows the token"
        task = hosts.wait_task(task_id, timeout_s=240)
        assert task.status is TaskStatus.COMPLETED, task.reason
        assert len(set(task.course.placement)) == 2
        assert [finished_steps(hosts.noted(rank)) for rank in range(2)] == [(1, [], [])] * 2
        wait_for(lambda: not _agents(hosts), 120, "agents that left with their task")
        wait_for(lambda: not leftovers(hosts.data_dir / "fleets"), 120, "the end of their processes")
        if name == "slurm":
            wait_for(lambda: "COMPLETED" in _jobs(there.environment), 120, "the end of the job")


def test_agents_of_a_task_take_no_other_and_leave_when_it_is_stopped(hosts: Hosts) -> None:
    with system("ssh") as there:
        task_id = _detach(hosts, there, total=10**9, pause_s=0.05)
        wait_for(lambda: len(hosts.noted(0)) > 10, 240, "steps")
        other = hosts.submit(name="other", launcher="ssh", entrypoint=("true",))
        wait_for(lambda: "no ssh agent is attached" in hosts.task(other).reason, 60, "why the other one waits")
        hosts.tasks().stop(task_id)
        assert hosts.wait_task(task_id, timeout_s=120).status is TaskStatus.STOPPED
        wait_for(lambda: not leftovers(hosts.data_dir / "fleets"), 120, "the end of their processes")
        assert hosts.task(other).status is TaskStatus.QUEUED
        _resume(hosts, task_id)


def _resume(hosts: Hosts, task_id: str) -> None:
    """The same agents are asked for again, and find the checkpoint."""
    before = len(hosts.noted(0))
    done = strata("resume", "--detach", "--data-dir", str(hosts.data_dir), task_id)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: len(hosts.noted(0)) > before + 10, 240, "more steps")
    hosts.tasks().stop(task_id)
    assert hosts.wait_task(task_id, timeout_s=120).status is TaskStatus.STOPPED
    assert [finished_steps(hosts.noted(rank)) for rank in range(2)] == [(2, [], [])] * 2
    wait_for(lambda: not leftovers(hosts.data_dir / "fleets"), 120, "the end of their processes")


def test_a_job_that_hits_its_time_limit_is_queued_again_and_loses_no_step(hosts: Hosts) -> None:
    """Slurm counts in minutes and warns up to a minute early: a job of one minute may be warned at any time."""
    with system("slurm", "requeue", "time=1", "signal=B:USR1@20") as there:
        task_id = _detach(hosts, there, total=220, pause_s=0.2)
        task = hosts.wait_task(task_id, timeout_s=600)
        assert task.status is TaskStatus.COMPLETED, (task.reason, _jobs(there.environment))
        assert task.attempt >= 2
        assert (task.course.failures, task.course.preemptions, task.course.losses) == (0, 0, 0)
        assert task.saved_step == 220
        for rank in range(2):
            assert finished_steps(hosts.noted(rank)) == (task.attempt, [], [])
        wait_for(lambda: "COMPLETED" in _jobs(there.environment), 120, "the end of the job")
        assert len(_jobs(there.environment).splitlines()) == 1, "it was one job all the time"


def test_instead_of_an_array_many_tasks_share_a_name(hosts: Hosts) -> None:
    """As docs/deploying.md says it: one job after the other, and all of them end by one word."""
    with system("slurm", "job-name=sweep", "dependency=singleton") as there:
        first = _detach(hosts, there, total=10**9, pause_s=0.05)
        others = [_detach(hosts, there, total=total, pause_s=0.05) for total in (5, 10**9)]
        wait_for(lambda: hosts.task(first).status is TaskStatus.RUNNING, 240, "the first one")
        waits = wait_for(lambda: _jobs(there.environment).count("PENDING Dependency") == 2, 60, "the reason to wait")
        assert waits
        hosts.tasks().stop(first)
        assert hosts.wait_task(others[0], timeout_s=240).status is TaskStatus.COMPLETED
        subprocess.run(["scancel", "--name=sweep"], env={**os.environ, **there.environment}, check=True)
        wait_for(lambda: _jobs(there.environment).count("CANCELLED") >= 1, 120, "the end of the last one")
        hosts.tasks().stop(others[1])
