"""Agents on other machines: the command line that a launcher has to start."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strata.errors import InvalidArgument
from strata.launchers.base import Launcher, LaunchSpec
from strata.launchers.kubernetes import KubernetesLauncher
from strata.launchers.local import LocalLauncher
from strata.launchers.ray import RayLauncher
from strata.launchers.slurm import SlurmLauncher
from strata.launchers.ssh import SshLauncher
from strata.types.tasks import LAUNCHERS

__all__ = ["FleetSpec", "agent_spec", "fleet_hosts", "open_launcher"]

# Starts an agent that was killed again, as `strata up` does for its own; its ranks ran on and are adopted. One that
# ends by itself, well or with an error, stays down. After a SIGTERM, which is for the agent, too, none is started.
# A SIGUSR1 is a warning, for the agent alone.
_KEEP = (
    'trap stop=1 TERM; trap : USR1; until [ "$stop" ]; do "$@"; code=$?; [ $code -gt 128 ] || break; done; exit $code'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    """Agents that join one coordinator. `folder` must be seen by all of them: it holds the checkpoints of the tasks,
    and a folder per agent. `token` travels in the environment, never on a command line. Agents take the ranks of
    `task_id` alone and leave with it. An agent that had no ranks or no coordinator for `leave_after_s` goes: whoever
    started it may have been killed."""

    launcher: str
    coordinator: str
    folder: Path
    num_agents: int = 1
    slots_per_agent: int = 1
    token: str = ""
    telemetry: str = ""
    tag: str = "agents"
    task_id: str = ""
    python: str = sys.executable
    leave_after_s: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.num_agents < 1 or self.slots_per_agent < 1:
            raise InvalidArgument(
                f"num_agents is {self.num_agents}, slots_per_agent {self.slots_per_agent}: at least 1 of each is needed"
            )


def agent_spec(fleet: FleetSpec) -> LaunchSpec:
    """The command line and environment of one agent, the same for every copy."""
    folder = fleet.folder.resolve()
    argv = ["/bin/sh", "-c", _KEEP, "strata-agent", fleet.python, "-m", "strata.agent"]
    argv += ["--data-dir", f"{folder}/agent-%d", "--coordinator", fleet.coordinator]
    argv += ["--slots", str(fleet.slots_per_agent), "--launcher", fleet.launcher]
    argv += ["--leave-after", f"{fleet.leave_after_s:g}"]
    if fleet.task_id:
        argv += ["--task", fleet.task_id]
    if fleet.telemetry:
        argv += ["--telemetry", fleet.telemetry]
    log = folder / f"{fleet.launcher}-{fleet.tag}.log"
    env = {"STRATA_CHECKPOINT_BUCKET": str(folder / "checkpoints"), **fleet.env}
    if fleet.token:
        env["STRATA_TOKEN"] = fleet.token
    return LaunchSpec(
        argv=tuple(argv),
        tag=fleet.tag,
        env=env,
        working_dir=str(folder),
        stdout=log,
        stderr=log,
        copies=fleet.num_agents,
        cpus=fleet.slots_per_agent,
        shared=env["STRATA_CHECKPOINT_BUCKET"] == str(folder / "checkpoints"),
    )


def fleet_hosts(launcher: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that were named one by one, as ssh needs them; a scheduler finds its own."""
    return tuple(name for name in options.get("host", "").split(",") if name) if launcher == "ssh" else ()


def open_launcher(name: str, options: Mapping[str, str] | None = None) -> Launcher:
    """`options` are the launcher's own: host (several by commas) and ssh_config for ssh, whatever sbatch takes for
    slurm, address, num_cpus, num_gpus, placement and runtime_env for ray, image and more for kubernetes."""
    given = dict(options or {})
    match name:
        case "local":
            return LocalLauncher()
        case "ssh":
            return _ssh(given)
        case "slurm":
            return SlurmLauncher(given)
        case "kubernetes":
            return KubernetesLauncher(given)
        case "ray":
            return RayLauncher(given)
    raise InvalidArgument(f"launcher {name!r} is unknown", hint=f"Known: {', '.join(LAUNCHERS)}.")


def _ssh(options: dict[str, str]) -> SshLauncher:
    hosts = fleet_hosts("ssh", options)
    unknown = sorted(set(options) - {"host", "ssh_config"})
    if unknown or not hosts:
        wrong = f"knows no option {unknown[0]!r}" if unknown else "needs to know where"
        hint = "For example --launcher-option host=node1,node2; ssh_config=FILE is the other option."
        raise InvalidArgument(f"the ssh launcher {wrong}", hint=hint)
    return SshLauncher(hosts, ssh_config=options.get("ssh_config"))
