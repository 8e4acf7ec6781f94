"""`strata run --workers 4 examples/train_numpy.py` under a real `strata up`, and kill -9 of one rank, of the agent, of
the coordinator, of everything: the job ends with the same committed sample ledger and the same weights, bit for bit, as
an undisturbed run. Real training of some seconds per case; all cases share one cluster.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from strata.checkpoint.manager import CheckpointManager
from strata.cluster.tasks import Task
from strata.types.tasks import TaskStatus
from tests.support.cluster import Cluster, descendants
from tests.support.nodes import wait_for
from tests.support.run_command import RunCommand

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "train_numpy.py"
_WORKERS = 4

Result = tuple[bytes, ...]  # the weights, and the ledger of each rank, as the last checkpoint has them


class Site:
    """One data folder, with a `strata up` over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = self._up()

    def _up(self) -> Cluster:
        return Cluster(self.folder / "strata", "--slots", str(_WORKERS)).__enter__()

    def train(self) -> RunCommand:
        script = (str(_SCRIPT), "--data", str(self.folder / "data"), "--epochs", "1", "--pause", "0.02")
        return RunCommand(self.folder, "--workers", str(_WORKERS), *script)

    def kill(self, part: str) -> None:
        pid = self.cluster.pid_of(part)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def kill_everything(self, command: RunCommand) -> None:
        """The supervisor, all it started, their ranks, and whoever follows the task."""
        family = [self.cluster.process.pid, *(child.pid for child in descendants(self.cluster.process.pid))]
        family.append(command.process.pid)
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        self.cluster.process.communicate(timeout=60)
        command.process.wait(10)
        wait_for(lambda: not any(_lives(pid) for pid in family), what="the end of everything")
        (self.folder / "strata" / "endpoints.json").unlink()  # as nobody could: `up` must not be taken for ready by it
        self.cluster = self._up()

    def result(self, task_id: str) -> Result:
        """What is committed, read from the store alone."""
        with CheckpointManager(str(self.folder / "data" / "checkpoints" / task_id)) as manager:
            newest = manager.get_latest()
            assert newest is not None
            states = [manager.load(newest.step, rank=rank, world_size=_WORKERS) for rank in range(_WORKERS)]
        assert newest.step == 94
        return (states[0]["weights"].tobytes(), *(state["ledger"].tobytes() for state in states))

    def close(self) -> None:
        self.cluster.__exit__()


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("run"))
    yield site
    site.close()


@pytest.fixture(scope="module")
def undisturbed(site: Site) -> Result:
    with site.train() as command:
        task_id = command.task_id()
        assert command.wait() == 0, command.output
    result = site.result(task_id)
    assert len(set(result)) == 1 + _WORKERS, "every rank has samples of its own"
    return result


def _task(command: RunCommand, task_id: str) -> Task:
    return command.records().tasks[task_id]


def _pids(command: RunCommand) -> dict[int, int]:
    return {rank: command.rank_pid(rank) for rank in range(_WORKERS)}


def _check(site: Site, command: RunCommand, *, attempt: int, undisturbed: Result) -> None:
    assert command.wait() == 0, command.output
    task_id = command.task_id()
    assert _task(command, task_id).attempt == attempt
    assert site.result(task_id) == undisturbed


@pytest.mark.slow
def test_a_rank(site: Site, undisturbed: Result) -> None:
    with site.train() as command:
        command.wait_checkpoint(40)
        os.kill(command.rank_pid(2), signal.SIGKILL)
        _check(site, command, attempt=2, undisturbed=undisturbed)
    assert "rank 2 was killed by signal 9 (SIGKILL); all ranks go back to step" in command.output


@pytest.mark.slow
@pytest.mark.parametrize("part", ["agent", "coordinator"])
def test_a_part_of_the_cluster(site: Site, undisturbed: Result, part: str) -> None:
    """No rank is restarted."""
    with site.train() as command:
        command.wait_checkpoint(20)
        before = _pids(command)
        site.kill(part)
        wait_for(lambda: site.cluster.pid_of(part), what=f"a new {part}")
        command.wait_checkpoint(40)
        assert _pids(command) == before
        _check(site, command, attempt=1, undisturbed=undisturbed)


@pytest.mark.slow
def test_everything(site: Site, undisturbed: Result) -> None:
    with site.train() as command:
        task_id = command.task_id()
        command.wait_checkpoint(40)
        site.kill_everything(command)
        task = wait_for(lambda: (task := _task(command, task_id)).status.final and task, 60, "the end of the task")
    assert (task.status, task.attempt) == (TaskStatus.COMPLETED, 2)
    assert site.result(task_id) == undisturbed
