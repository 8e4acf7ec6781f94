"""`strata run --launcher ssh|slurm|ray` as a user types it: it starts the agents itself, over a real sshd, under a real
Slurm with two nodes, on a real Ray head with token auth. Four workers train, one is killed and replaced, and the
weights are those of an undisturbed run, bit for bit. `make test-launchers` installs what this needs. Some 20 s each.
"""

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import wait_for
from tests.support.ray_head import TOKEN, ray_head
from tests.support.run_command import RunCommand, leftovers
from tests.support.slurm import slurm
from tests.support.sshd import sshd

pytestmark = pytest.mark.launchers

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "train_numpy.py"
_DONE = re.compile(r"done: loss [\d.]+ after \d+ steps, weights \w+")


def _need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make test-launchers)")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("fleet")
    yield folder
    assert leftovers(folder) == []


def _command(shared: Path, name: str, *flags: str, environment: dict[str, str] | None = None) -> RunCommand:
    script = (str(_SCRIPT), "--data", str(shared / "data"), "--epochs", "1", "--pause", "0.02")
    return RunCommand(shared / name, *flags, "--workers", "4", *script, environment=environment)


@pytest.fixture(scope="module")
def undisturbed(shared: Path) -> str:
    with _command(shared, "local") as command:
        assert command.wait() == 0, command.output
    return _result(command)


def _result(command: RunCommand) -> str:
    found = _DONE.search(command.output)
    assert found, command.output
    return found[0]


def _kill_a_rank(command: RunCommand) -> None:
    command.wait_checkpoint(40)
    os.kill(command.rank_pid(1), signal.SIGKILL)
    assert command.wait() == 0, command.output
    assert "rank 1 was killed by signal 9" in command.output
    assert "attempt 2, resumes from step" in command.output


def test_ssh(shared: Path, undisturbed: str, tmp_path: Path) -> None:
    """Here an agent is killed as well: the shell around it starts another, which adopts the ranks. The rank that is
    killed then is another agent's: of an adopted rank nobody learns the signal."""
    _need("sshd", "ssh-keygen")
    with sshd(tmp_path) as config:
        flags = ("--launcher", "ssh", "-o", "host=node,twin", "-o", f"ssh_config={config}")
        with _command(shared, "ssh", *flags) as command:
            command.wait_checkpoint()
            agents = (command.data_dir / "fleets").glob("*/agent-*")
            ready = next(agent / "agent.json" for agent in agents if not any(agent.glob("agent/ranks/*.1.json")))
            os.kill(int(re.search(r'"pid": (\d+)', ready.read_text())[1]), signal.SIGKILL)  # type: ignore[index]  # ours
            _kill_a_rank(command)
    assert _result(command) == undisturbed


def test_slurm_with_two_nodes(shared: Path, undisturbed: str) -> None:
    _need("sbatch", "slurmctld", "slurmd", "munged")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # a socket's path must be short
    with slurm(folder) as environment:
        with _command(shared, "slurm", "--launcher", "slurm", "--nodes", "2", environment=environment) as command:
            _kill_a_rank(command)
        assert _result(command) == undisturbed
        assert re.search(r"job \d+ is RUNNING on n\[1-2\]", command.output) or "PENDING" in command.output
    assert leftovers(folder) == []
    shutil.rmtree(folder)


def test_ray_with_a_token(shared: Path, undisturbed: str) -> None:
    pytest.importorskip("ray", reason="ray is not installed (make test-launchers)")
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # a socket's path must be short
    with ray_head(folder) as address:
        flags = ("--launcher", "ray", "--nodes", "2", "-o", f"address={address}")
        with _command(shared, "ray-stranger", *flags) as stranger:
            assert stranger.wait() == 1
        assert f"error: no Ray cluster answers at {address}" in stranger.output
        assert "RAY_AUTH_TOKEN" in stranger.output
        with _command(shared, "ray", *flags, environment={"RAY_AUTH_TOKEN": TOKEN}) as command:
            _kill_a_rank(command)
        assert _result(command) == undisturbed
    wait_for(lambda: not leftovers(folder), what="the end of all of Ray")
    shutil.rmtree(folder)


def test_ctrl_c_stops_the_task_and_the_agents(shared: Path, tmp_path: Path) -> None:
    _need("sshd", "ssh-keygen")
    with sshd(tmp_path) as config:
        flags = ("--launcher", "ssh", "-o", "host=node", "-o", f"ssh_config={config}")
        with _command(shared, "stopped", *flags) as command:
            command.wait_checkpoint()
            command.process.send_signal(signal.SIGINT)
            assert command.wait() == 1
        assert "stopped by Ctrl-C" in command.output
        assert leftovers(command.data_dir) == []
