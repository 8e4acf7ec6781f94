"""A job that changes its size: hosts go for good and come back, and the built-in trainer ends with the weights and the
ledger of the run that was always whole, bit for bit.
"""

import sys
import time
from pathlib import Path

import pytest

from strata.checkpoint.manager import CheckpointManager
from tests.support.elastic_job import ElasticJob, kill_at_random, start_hosts
from tests.support.hosts import Hosts
from tests.support.networks import Networks, lacking
from tests.support.nodes import wait_for, write_dataset

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]
_SCRIPT = Path(__file__).with_name("paced_trainer.py")


def _end(hosts: Hosts) -> tuple[bytes, bytes]:
    """What the job ends with: its weights, and the chains of hashes over all samples that each share has read."""
    (folder,) = (path for path in (hosts.data_dir / "checkpoints").iterdir() if path.is_dir())
    with CheckpointManager(folder) as manager:
        found = manager.recover()
        assert found is not None
        params = found.state["model"]["params"]
        weights = b"".join(params[name].tobytes() for name in sorted(params))
        size = found.world_size
        states = [manager.load(found.info.step, rank=rank, world_size=size) for rank in range(size)]
        return weights, b"".join(state["ledger"].tobytes() for state in states)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder, rows=6_000)
    return folder


@pytest.fixture(scope="module")
def kills(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("--kills"))


@pytest.fixture(scope="module")
def epochs(kills: int) -> int:
    """Enough of them for so many kills, of which each costs about twenty steps."""
    return 15 + kills // 2


@pytest.fixture(scope="module")
def whole(data: Path, epochs: int, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """What a run of four ends with that nobody disturbs."""
    with Hosts(tmp_path_factory.mktemp("whole")) as hosts:
        hosts.start("coordinator")
        hosts.start_host("a", slots=4)
        ElasticJob(hosts, data, _SCRIPT, epochs=epochs, least=4).finish()
        return _end(hosts)


def test_four_three_one_and_four_ranks_end_with_the_same_bits(
    data: Path, epochs: int, whole: tuple[bytes, bytes], tmp_path: Path
) -> None:
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        start_hosts(hosts, "a", "b", "c", "d")
        job = ElasticJob(hosts, data, _SCRIPT, epochs=epochs, least=1)
        job.wait_size(4)
        hosts.kill_hosts("b")
        shrunk = job.wait_size(3)
        assert (shrunk.course.failures, shrunk.course.preemptions) == (0, 1)
        hosts.kill_hosts("a", "c")
        job.wait_size(1)
        start_hosts(hosts, "a", "b", "c")
        grown = job.wait_size(4)
        assert (grown.course.failures, grown.course.preemptions) == (0, 2), "to grow is no loss"
        job.finish()
        assert _end(hosts) == whole


def test_kills_at_random_change_no_bit(
    data: Path, kills: int, epochs: int, whole: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Ranks, whole hosts and the coordinator. `--kills 100` is the full measure."""
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        kill_at_random(hosts, data, _SCRIPT, epochs=epochs, kills=kills)
        assert _end(hosts) == whole


def test_training_goes_on_when_a_host_is_cut_off_for_good(
    data: Path, epochs: int, whole: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Two hosts with two ranks each, and one of them is gone without a word. Prints how long nobody trained."""
    if why := lacking():
        pytest.skip(why)
    with Networks(tmp_path) as hosts:
        hosts.start("coordinator")
        names = {hosts.start_host(name): name for name in "ab"}
        job = ElasticJob(hosts, data, _SCRIPT, epochs=epochs, least=2)
        task = job.wait_size(4)
        hosts.cut_off(names[task.course.placement[0]])  # where rank 0 is, whom all others wait for
        cut = time.time()
        wait_for(lambda: hosts.task(job.task_id).attempt == 2, what="the next attempt")
        known_s = time.time() - cut
        after = job.wait_size(2)
        assert (after.attempt, after.course.preemptions) == (2, 1)
        first_step = float(job.fast.with_name("steps-2").read_text().split()[0])
        sys.stdout.write(f"{known_s:.1f} s after the cut the next attempt, {first_step - cut:.1f} s after it a step\n")
        job.finish()
        assert _end(hosts) == whole
