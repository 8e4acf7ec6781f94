"""Agents that other systems start, through the library: over a real sshd, under a real Slurm with two nodes, on a real
Ray head. Each is found again by its tag, attaches, comes back when it is killed, and is gone when a stop returns.
`make test-launchers` installs what this needs. Up to 20 s each: whole clusters are started.
"""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from strata.launchers.base import LaunchSpec
from strata.launchers.fleet import FleetSpec, agent_spec, open_launcher
from tests.support.launchers import need, short_folder
from tests.support.nodes import Nodes, wait_for
from tests.support.ray_head import TOKEN, ray_head
from tests.support.slurm import slurm
from tests.support.sshd import sshd

pytestmark = pytest.mark.timeout(1200)  # whole clusters, on a busy machine


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with Nodes(tmp_path) as nodes:
        nodes.start("coordinator")
        yield nodes


def _spec(nodes: Nodes, launcher: str, agents: int) -> LaunchSpec:
    folder = nodes.data_dir.parent / "fleet"
    folder.mkdir()
    token = (nodes.data_dir / "token").read_text().strip()
    fleet = FleetSpec(
        launcher=launcher, coordinator=nodes.address, folder=folder, num_agents=agents, slots_per_agent=2, token=token
    )
    return agent_spec(fleet)


def _agents(nodes: Nodes) -> dict[str, str]:
    """Agent id → incarnation of those that are attached."""
    return {item.agent_id: item.incarnation for item in nodes.records().agents.values() if item.alive}


def _live(nodes: Nodes, name: str, agents: int, options: dict[str, str]) -> None:
    """The whole life of a fleet."""
    launcher, spec = open_launcher(name, options), _spec(nodes, name, agents)
    launcher.prepare(spec)
    handle = launcher.start(spec)
    try:
        before = wait_for(lambda: len(_agents(nodes)) == agents and _agents(nodes), 240, "all agents")
        ready = Path(spec.working_dir) / "agent-0" / "agent.json"
        wait_for(ready.exists, what="the agent's own word, which comes after the coordinator's")
        os.kill(int(json.loads(ready.read_text())["pid"]), signal.SIGKILL)
        after = wait_for(lambda: _agents(nodes) != before and len(_agents(nodes)) == agents and _agents(nodes), 240)
        assert set(after) == set(before)
        assert launcher.poll(handle) is None
        assert not launcher.describe(handle).pending
    finally:
        launcher.stop(handle, 20.0)
    assert launcher.poll(handle) is not None
    wait_for(lambda: not _agents(nodes), 120, "agents have left")


def test_local(nodes: Nodes) -> None:
    """Needs nothing that is not here anyway, so it runs with every `make test`."""
    _live(nodes, "local", 1, {})


def test_agents_that_nobody_needs_leave_by_themselves(tmp_path: Path) -> None:
    """Whoever started them was killed, and the coordinator with it."""
    fleet = FleetSpec(launcher="local", coordinator="127.0.0.1:1", folder=tmp_path, leave_after_s=0.2)
    launcher, spec = open_launcher("local"), agent_spec(fleet)
    handle = launcher.start(replace(spec, env={**os.environ, **spec.env}))
    assert wait_for(lambda: launcher.poll(handle), what="its end").code == 0
    assert spec.stdout is not None
    assert "no ranks or no coordinator for 0.2 s: this agent leaves" in spec.stdout.read_text()


@pytest.mark.launchers
def test_ssh(nodes: Nodes, tmp_path: Path) -> None:
    need("sshd", "ssh-keygen")
    with sshd(tmp_path) as config:
        _live(nodes, "ssh", 1, {"host": "node", "ssh_config": str(config)})


@pytest.mark.launchers
def test_slurm_with_two_nodes(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    need("sbatch", "slurmctld", "slurmd", "munged")
    with short_folder("slurm-") as folder, slurm(folder) as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        _live(nodes, "slurm", 2, {"partition": "all"})


@pytest.mark.launchers
def test_ray(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # read once, by the import
    ray = pytest.importorskip("ray", reason="ray is not installed (make test-launchers)")
    with short_folder("ray-") as folder, ray_head(folder) as address:
        try:
            _live(nodes, "ray", 2, {"address": address})
        finally:
            ray.shutdown()
