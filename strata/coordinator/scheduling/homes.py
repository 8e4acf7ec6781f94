"""Hosts that keep checkpoints in folders of their own: a task over several of them is told so, and one that has saved
on one of them stays with those that see it. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.state.placement import Host
from strata.types.checkpoints import CheckpointInfo

__all__ = ["hosts_apart", "within_reach"]

_VARIABLE = "STRATA_CHECKPOINTS_APART"


def hosts_apart(task: Task, agents: Mapping[str, Agent]) -> dict[str, str]:
    """The variable that names the task's hosts where they do not share the place of checkpoints; nothing where they
    do, or nobody knows."""
    hosts = [agents[name] for name in dict.fromkeys(task.course.placement) if name in agents]
    if len({agent.checkpoints for agent in hosts if agent.checkpoints}) < 2:
        return {}
    return {_VARIABLE: ", ".join(agent.hostname for agent in hosts)}


def within_reach(
    task: Task | None, saved: CheckpointInfo | None, agents: Mapping[str, Agent], hosts: Iterable[Host]
) -> list[Host]:
    """The hosts, of which those are marked that do not see the task's newest checkpoint: there it would begin anew."""
    home = _home(task, saved, agents) if task is not None and saved is not None else ""
    return [replace(host, apart=bool(home) and agents[host.agent_id].checkpoints not in ("", home)) for host in hosts]


def _home(task: Task, saved: CheckpointInfo, agents: Mapping[str, Agent]) -> str:
    """The home in which that checkpoint lies; empty when it lies where the script says."""
    homes = [agents[name].checkpoints for name in task.course.placement if name in agents]
    return next((home for home in homes if home and saved.path.startswith(f"{home.partition('#')[0]}/")), "")
