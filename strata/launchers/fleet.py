"""Agents on other machines: what a launcher has to start so that tasks of its kind find slots."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strata.errors import InvalidArgument
from strata.launchers.base import Launcher, LaunchSpec
from strata.launchers.local import LocalLauncher
from strata.launchers.ray import RayLauncher
from strata.launchers.slurm import SlurmLauncher
from strata.launchers.ssh import SshLauncher
from strata.types.tasks import LAUNCHERS

__all__ = ["FleetSpec", "agent_spec", "open_launcher"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    """Agents that join one coordinator. `folder` must be seen by all of them: it holds the checkpoints of the tasks,
    and a folder per agent. `token` travels in the environment, never on a command line."""

    launcher: str
    coordinator: str
    folder: Path
    num_agents: int = 1
    slots_per_agent: int = 1
    token: str = ""
    telemetry: str = ""
    tag: str = "agents"
    python: str = sys.executable
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.num_agents < 1 or self.slots_per_agent < 1:
            raise InvalidArgument(
                f"num_agents is {self.num_agents}, slots_per_agent {self.slots_per_agent}: at least 1 of each is needed"
            )


def agent_spec(fleet: FleetSpec) -> LaunchSpec:
    """The command line and environment of one agent, the same for every copy."""
    folder = fleet.folder.resolve()
    argv = [fleet.python, "-m", "strata.agent", "--data-dir", f"{folder}/agent-%d", "--coordinator", fleet.coordinator]
    argv += ["--slots", str(fleet.slots_per_agent), "--launcher", fleet.launcher]
    if fleet.telemetry:
        argv += ["--telemetry", fleet.telemetry]
    env = {"STRATA_CHECKPOINT_BUCKET": str(folder / "checkpoints"), **fleet.env}
    if fleet.token:
        env["STRATA_TOKEN"] = fleet.token
    return LaunchSpec(
        argv=tuple(argv),
        tag=fleet.tag,
        env=env,
        working_dir=str(folder),
        stdout=folder / f"{fleet.launcher}-{fleet.tag}.log",
        copies=fleet.num_agents,
    )


def open_launcher(name: str, options: Mapping[str, str] | None = None) -> Launcher:
    """`options` are the launcher's own: host and ssh_config for ssh, partition for slurm, address for ray."""
    given = dict(options or {})
    match name:
        case "local":
            return LocalLauncher()
        case "ssh":
            return SshLauncher(given["host"], ssh_config=given.get("ssh_config"))
        case "slurm":
            return SlurmLauncher(partition=given.get("partition"))
        case "ray":
            return RayLauncher(given.get("address", "auto"))
    raise InvalidArgument(f"launcher {name!r} is unknown", hint=f"Known: {', '.join(LAUNCHERS)}.")
