"""Agents that other systems start: over a real sshd, under a real Slurm with two nodes, on a real Ray head. In each,
workers train, one is killed and replaced, and the job completes. `make test-launchers` installs what this needs;
without it a case is skipped with the reason. Minutes in all: whole clusters are started.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.launchers.base import Launcher, LaunchSpec
from strata.launchers.fleet import FleetSpec, agent_spec
from strata.launchers.local import LocalLauncher
from strata.launchers.slurm import SlurmLauncher
from strata.launchers.ssh import SshLauncher
from strata.types.tasks import TaskStatus
from tests.support.nodes import Nodes, wait_for, write_dataset
from tests.support.slurm import slurm
from tests.support.sshd import sshd

pytestmark = pytest.mark.launchers


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator")
        yield nodes


def _need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make test-launchers)")


def _fleet(nodes: Nodes, launcher: str, agents: int, slots: int) -> LaunchSpec:
    folder = nodes.data_dir.parent / "fleet"
    folder.mkdir()
    token = (nodes.data_dir / "token").read_text().strip()
    return agent_spec(
        FleetSpec(
            launcher=launcher,
            coordinator=nodes.address,
            folder=folder,
            num_agents=agents,
            slots_per_agent=slots,
            token=token,
            env={"PYTHONPATH": str(Path.cwd()), "PATH": os.environ["PATH"]},
            python=sys.executable,
        )
    )


def _train(nodes: Nodes, launcher: str, workers: int) -> None:
    """Submits, kills one worker in the middle, and waits for the end."""
    nodes.register("ds", write_dataset(nodes.data_dir.parent / "data"))
    config = {"epochs": 2, "checkpoint_every": 10, "pause_s": 0.05}
    task_id = nodes.submit(name="fleet", dataset_id="ds", worker_count=workers, launcher=launcher, config=config)
    saved = wait_for(
        lambda: [item for item in nodes.state().checkpoints if item["status"] == "completed"], 60, "a checkpoint"
    )
    assert saved[0]["task_id"] == task_id
    victim = next(item for item in nodes.state().workers if item["task_id"] == task_id and item["rank"] == 1)
    os.kill(int(victim["metadata"]["pid"]), signal.SIGKILL)
    task = nodes.wait_task(task_id, timeout_s=90)
    assert (task.status, task.attempt, task.failures) == (TaskStatus.COMPLETED, 2, 1)


def _agents(nodes: Nodes) -> int:
    return sum(item["state"] == "ready" for item in nodes.state().agents)


def _stop(launcher: Launcher, handle: str, nodes: Nodes) -> None:
    launcher.stop(handle, 20.0)
    assert launcher.poll(handle) is not None
    wait_for(lambda: _agents(nodes) == 0, what="agents have left")


def test_ssh(nodes: Nodes, tmp_path: Path) -> None:
    _need("sshd", "ssh-keygen")
    with sshd(tmp_path) as config:
        launcher = SshLauncher("node", ssh_config=str(config))
        spec = _fleet(nodes, "ssh", 1, 2)
        launcher.prepare(spec)
        handle = launcher.start(spec)
        assert launcher.adopt(spec.tag) == handle
        assert launcher.adopt("nobody") is None
        wait_for(lambda: _agents(nodes) == 1, what="the agent over ssh")
        _train(nodes, "ssh", 2)
        assert launcher.poll(handle) is None
        _stop(launcher, handle, nodes)


def test_slurm_with_two_nodes(nodes: Nodes) -> None:
    _need("sbatch", "slurmctld", "slurmd", "munged")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # a socket's path must be short
    with slurm(folder) as environment, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        launcher = SlurmLauncher()
        spec = _fleet(nodes, "slurm", 2, 2)
        launcher.prepare(spec)
        handle = launcher.start(spec)
        assert launcher.adopt(spec.tag) == handle
        wait_for(lambda: _agents(nodes) == 2, 60, "two agents under Slurm")
        _train(nodes, "slurm", 4)
        assert launcher.poll(handle) is None
        _stop(launcher, handle, nodes)
    shutil.rmtree(folder)


def test_ray(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed (make test-launchers)")
    from strata.launchers.ray import RayLauncher

    folder = tmp_path_factory.mktemp("r")
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--num-cpus=4", "--disable-usage-stats"]
    start += ["--dashboard-host=127.0.0.1", "--port=0", "--include-dashboard=false", "--object-store-memory=100000000"]
    head = subprocess.Popen([*start, f"--temp-dir={folder}", "--block"], stdout=subprocess.DEVNULL)
    try:
        address = wait_for(lambda: _ray_address(folder), 60, "a Ray head")
        launcher = RayLauncher(address)
        spec = _fleet(nodes, "ray", 2, 2)
        launcher.prepare(spec)
        handle = launcher.start(spec)
        assert launcher.adopt(spec.tag) == handle
        wait_for(lambda: _agents(nodes) == 2, 60, "two agents on Ray")
        _train(nodes, "ray", 4)
        assert launcher.poll(handle) is None
        _stop(launcher, handle, nodes)
        ray.shutdown()
    finally:
        head.send_signal(signal.SIGTERM)
        head.wait(30)


def _ray_address(folder: Path) -> str:
    file = folder / "ray_current_cluster"
    return file.read_text().strip() if file.exists() else ""


def test_local_stop_escalates_and_verifies(tmp_path: Path) -> None:
    launcher = LocalLauncher()
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    out = tmp_path / "out"
    spec = LaunchSpec(argv=(sys.executable, "-c", code), tag="deaf", env=dict(os.environ), stdout=out)
    launcher.prepare(spec)
    handle = launcher.start(spec)
    wait_for(lambda: out.exists() and "up" in out.read_text())
    assert launcher.adopt("deaf") == handle
    began = time.monotonic()
    assert launcher.stop(handle, 0.2).code == -signal.SIGKILL
    assert time.monotonic() - began < 5
    assert launcher.adopt("deaf") is None
