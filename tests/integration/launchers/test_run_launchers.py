"""`strata run --launcher ssh|slurm|ray` as a user types it: it starts the agents itself, over a real sshd, under a real
Slurm with two nodes, on a real Ray head with token auth. Four workers train, one is killed and replaced, and the
weights are those of an undisturbed run, bit for bit. `make test-launchers` installs what this needs. Some 20 s each.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.launchers import system
from tests.support.run_command import RunCommand, leftovers

pytestmark = [pytest.mark.launchers, pytest.mark.timeout(1200)]  # whole clusters, on a busy machine

_SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "train_numpy.py"
_LONG_S = 300.0  # on a machine that is busy with other things
_DONE = re.compile(r"done: loss [\d.]+ after \d+ steps, weights \w+")


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
        assert command.wait(_LONG_S) == 0, command.output
    return _result(command)


def _result(command: RunCommand) -> str:
    found = _DONE.search(command.output)
    assert found, command.output
    return found[0]


def _kill_a_rank(command: RunCommand) -> None:
    command.wait_checkpoint(40, _LONG_S)
    os.kill(command.rank_pid(1), signal.SIGKILL)
    assert command.wait(_LONG_S) == 0, command.output
    assert "rank 1 was killed by signal 9" in command.output
    assert "attempt 2, resumes from step" in command.output


def test_ssh(shared: Path, undisturbed: str) -> None:
    """Here an agent is killed as well: the shell around it starts another, which adopts the ranks. The rank that is
    killed then is another agent's: of an adopted rank nobody learns the signal."""
    with system("ssh") as there, _command(shared, "ssh", *there.flags) as command:
        command.wait_checkpoint(within_s=_LONG_S)
        agents = (command.data_dir / "fleets").glob("*/agent-*")
        ready = next(agent / "agent.json" for agent in agents if not any(agent.glob("agent/ranks/*.1.json")))
        os.kill(int(re.search(r'"pid": (\d+)', ready.read_text())[1]), signal.SIGKILL)  # type: ignore[index]  # ours
        _kill_a_rank(command)
    assert _result(command) == undisturbed


def test_slurm_with_two_nodes(shared: Path, undisturbed: str) -> None:
    with system("slurm") as there:
        with _command(shared, "slurm", *there.flags, environment=there.environment) as command:
            _kill_a_rank(command)
        assert _result(command) == undisturbed
        assert re.search(r"job \d+ is RUNNING on n\[1-2\]", command.output) or "PENDING" in command.output


def test_ray_with_a_token(shared: Path, undisturbed: str) -> None:
    with system("ray", "placement=PACK", 'runtime_env={"env_vars": {"FROM_RAY": "yes"}}') as there:
        with _command(shared, "ray-stranger", *there.flags) as stranger:
            assert stranger.wait(_LONG_S) == 1
        assert "error: no Ray cluster answers at " in stranger.output
        assert "RAY_AUTH_TOKEN" in stranger.output
        with _command(shared, "ray", *there.flags, environment=there.environment) as command:
            command.wait_checkpoint(within_s=_LONG_S)
            assert psutil.Process(command.rank_pid(0)).environ()["FROM_RAY"] == "yes"
            _kill_a_rank(command)
        assert _result(command) == undisturbed


def test_ctrl_c_stops_the_task_and_the_agents(shared: Path) -> None:
    with system("ssh") as there:
        with _command(shared, "stopped", *there.flags) as command:
            command.wait_checkpoint(within_s=_LONG_S)
            command.process.send_signal(signal.SIGINT)
            assert command.wait(_LONG_S) == 1
        assert "stopped by Ctrl-C" in command.output
        assert leftovers(command.data_dir) == []
