"""A training job that changes its size, for tests: ranks, whole hosts and the coordinator are killed under it, hosts
come back, and it must end as if nothing had been.
"""

import os
import random
import signal
import sys
from pathlib import Path

from strata.client.tasks import TaskView
from strata.types.tasks import TaskStatus
from tests.support.hosts import Hosts
from tests.support.nodes import wait_for

__all__ = ["MOST", "ElasticJob", "kill_at_random", "start_hosts"]

MOST = 4
_NAMES = "abcd"  # of the hosts, with one slot each


class ElasticJob:
    """A script over a dataset on some hosts, which has until `finish` a pause after every step: its first argument is
    the file whose existence ends that. It saves every tenth step."""

    def __init__(self, hosts: Hosts, data: Path, script: Path, *, epochs: int, least: int, most: int = MOST) -> None:
        self.hosts = hosts
        self.fast = hosts.data_dir.parent / "fast"
        hosts.register("ds", str(data / "*.parquet"))
        self.task_id = hosts.submit(
            name="train",
            dataset_id="ds",
            worker_count=most,
            min_workers=least,
            grow_after_s=0.5,
            config={"learning_rate": 0.05, "batch_size": 16, "epochs": epochs, "checkpoint_every": 10},
            entrypoint=(sys.executable, str(script), str(self.fast)),
            max_restarts=1_000,
        )

    def wait_size(self, size: int) -> TaskView:
        """Until an attempt of that size has saved something."""

        def there() -> TaskView | None:
            task = self.hosts.task(self.task_id)
            assert not task.status.final, task.reason
            running = task.status is TaskStatus.RUNNING and task.size == size
            return task if running and (task.saved_step or -1) > task.course.step else None

        found: TaskView = wait_for(there, 120, f"{size} ranks at work")
        return found

    def finish(self) -> None:
        self.fast.touch()
        task = self.hosts.wait_task(self.task_id, timeout_s=240)
        assert task.status is TaskStatus.COMPLETED, task.reason


def start_hosts(hosts: Hosts, *names: str) -> dict[str, str]:
    """By agent id."""
    return {hosts.start_host(name, slots=1): name for name in names}


def kill_at_random(hosts: Hosts, data: Path, script: Path, *, epochs: int, kills: int) -> None:
    """From 4 ranks to 3, to 1 and back to 4 first; then whatever chance says. Returns when the job has finished."""
    chance = random.Random(16)
    away: list[str] = []
    names = start_hosts(hosts, *_NAMES)
    job = ElasticJob(hosts, data, script, epochs=epochs, least=1)
    job.wait_size(4)
    hosts.kill_hosts("b")
    job.wait_size(3)
    hosts.kill_hosts("a", "c")
    job.wait_size(1)
    start_hosts(hosts, "a", "b", "c")
    done = 3
    while done < kills:
        task = job.wait_size(MOST - len(away))
        there = sorted(set(_NAMES) - set(away))
        match chance.choice(["rank", "rank", "host", "host", "back", "back", "coordinator"]):
            case "back" if away:
                start_hosts(hosts, away.pop())
                continue  # that kills nobody
            case "host" if len(there) > 1:
                away.append(chance.choice(there))
                hosts.kill_hosts(away[-1])
            case "coordinator":
                hosts.kill("coordinator")
                hosts.start("coordinator")
            case _:
                try:
                    for pid in hosts.host_ranks(names[chance.choice(task.course.placement)]).values():
                        os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue  # the one before has just killed it
        done += 1
    start_hosts(hosts, *away)
    job.wait_size(MOST)
    job.finish()
