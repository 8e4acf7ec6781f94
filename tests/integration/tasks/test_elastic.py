"""A job that changes its size: hosts go for good and come back, and the built-in trainer ends with the weights and the
ledger of the run that was always whole, bit for bit.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from strata.checkpoint.manager import CheckpointManager
from strata.client.tasks import TaskView
from strata.types.tasks import TaskStatus
from tests.support.hosts import Hosts
from tests.support.networks import Networks, lacking
from tests.support.nodes import wait_for, write_dataset

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_SCRIPT = Path(__file__).with_name("paced_trainer.py")
_CONFIG = {"learning_rate": 0.05, "batch_size": 16, "epochs": 15, "checkpoint_every": 10}


class Job:
    """The paced trainer on some hosts. What it ends with are its weights and its ledgers."""

    def __init__(self, hosts: Hosts, data: Path, least: int, most: int) -> None:
        self.hosts = hosts
        self._fast = hosts.data_dir.parent / "fast"
        hosts.register("ds", str(data / "*.parquet"))
        self.task_id = hosts.submit(
            name="train",
            dataset_id="ds",
            worker_count=most,
            min_workers=least,
            grow_after_s=0.5,
            config=_CONFIG,
            entrypoint=(sys.executable, str(_SCRIPT), str(self._fast)),
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

    def first_step_at(self, attempt: int) -> float:
        """When the first step of an attempt was done, in Unix seconds."""
        return float((self._fast.with_name(f"steps-{attempt}")).read_text().split()[0])

    def finish(self) -> tuple[bytes, bytes]:
        self._fast.touch()
        task = self.hosts.wait_task(self.task_id, timeout_s=240)
        assert task.status is TaskStatus.COMPLETED, task.reason
        with CheckpointManager(self.hosts.data_dir / "checkpoints" / self.task_id) as manager:
            found = manager.recover()
            assert found is not None
            params = found.state["model"]["params"]
            weights = b"".join(params[name].tobytes() for name in sorted(params))
            size = found.world_size
            states = [manager.load(found.info.step, rank=rank, world_size=size) for rank in range(size)]
            return weights, b"".join(state["ledger"].tobytes() for state in states)


def _start(hosts: Hosts, *names: str) -> None:
    for name in names:
        hosts.start_host(name, slots=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder, rows=6_000)
    return folder


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """What a run of four ends with that nobody disturbs."""
    with Hosts(tmp_path_factory.mktemp("whole")) as hosts:
        hosts.start("coordinator")
        hosts.start_host("a", slots=4)
        return Job(hosts, data, 4, 4).finish()


def test_four_three_one_and_four_ranks_end_with_the_same_bits(
    data: Path, whole: tuple[bytes, bytes], tmp_path: Path
) -> None:
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        _start(hosts, "a", "b", "c", "d")
        job = Job(hosts, data, 1, 4)
        job.wait_size(4)
        hosts.kill_hosts("b")
        shrunk = job.wait_size(3)
        assert (shrunk.course.failures, shrunk.course.preemptions) == (0, 1)
        hosts.kill_hosts("a", "c")
        job.wait_size(1)
        _start(hosts, "a", "b", "c")
        grown = job.wait_size(4)
        assert (grown.course.failures, grown.course.preemptions) == (0, 2), "to grow is no loss"
        assert job.finish() == whole


def test_kills_at_random_change_no_bit(
    data: Path, whole: tuple[bytes, bytes], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Ranks, whole hosts and the coordinator. `--kills 100` is the full measure."""
    chance = random.Random(16)
    away: list[str] = []
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        names = {hosts.start_host(name, slots=1): name for name in "abcd"}
        job = Job(hosts, data, 1, 4)
        for _ in range(int(pytestconfig.getoption("--kills"))):
            task = job.wait_size(4 - len(away))
            there = sorted({"a", "b", "c", "d"} - set(away))
            match chance.choice(["rank", "rank", "host", "host", "back", "back", "coordinator"]):
                case "host" if len(there) > 1:
                    away.append(chance.choice(there))
                    hosts.kill_hosts(away[-1])
                case "back" if away:
                    _start(hosts, away.pop())
                case "coordinator":
                    hosts.kill("coordinator")
                    hosts.start("coordinator")
                case _:
                    for pid in hosts.host_ranks(names[chance.choice(task.course.placement)]).values():
                        os.kill(pid, signal.SIGKILL)
        _start(hosts, *away)
        assert job.finish() == whole


def test_training_goes_on_when_a_host_is_cut_off_for_good(
    data: Path, whole: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Two hosts with two ranks each, and one of them is gone without a word."""
    if why := lacking():
        pytest.skip(why)
    with Networks(tmp_path) as hosts:
        hosts.start("coordinator")
        names = {hosts.start_host(name): name for name in "ab"}
        job = Job(hosts, data, 2, 4)
        task = job.wait_size(4)
        hosts.cut_off(names[task.course.placement[0]])  # where rank 0 is, whom all others wait for
        cut = time.time()
        after = job.wait_size(2)
        assert (after.attempt, after.course.preemptions) == (2, 1)
        gone_s = job.first_step_at(2) - cut
        if os.getloadavg()[0] < 1.5 * (os.cpu_count() or 1):  # else it is the starts of interpreters that are measured
            assert gone_s < 8.0
        assert job.finish() == whole
