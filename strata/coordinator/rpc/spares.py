"""Warm spares as the coordinator sees them: what agents say of theirs, and whether a task may ask for so many."""

from strata.coordinator.state.agents import Agents
from strata.errors import InvalidArgument
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import control_pb2 as ct
from strata.types.tasks import SPARE_BYTES, TaskSpec

__all__ = ["check_spares", "spares_by_task"]

_GIB = 1 << 30


def spares_by_task(agents: Agents) -> list[ct.TaskSpares]:
    """Over all hosts that are alive."""
    found: dict[str, ct.TaskSpares] = {}
    for agent_id in agents.alive():
        beat = agents.pulses.of(agent_id).report
        for report in beat.spares if isinstance(beat, ag.AgentBeat) else ():
            total = found.setdefault(report.task_id, ct.TaskSpares(task_id=report.task_id))
            total.wanted += report.wanted
            total.warm += report.warm
            total.memory_bytes += report.memory_bytes
    return list(found.values())


def check_spares(spec: TaskSpec, agents: Agents) -> None:
    """Refuses what could never be warm: a program that is not Python, and more than any host has memory for."""
    if not spec.spares:
        return
    program = spec.entrypoint[0] if spec.entrypoint else "python"
    if not program.rpartition("/")[2].startswith("python"):
        raise InvalidArgument(
            f"spares are interpreters of Python, and {program!r} is none", hint="Leave out spares, or run a .py script."
        )
    free = _free_bytes(spec.launcher, agents)
    if free is not None and spec.spares * SPARE_BYTES > free:
        raise InvalidArgument(
            f"{spec.spares} spares per host hold at least {spec.spares * SPARE_BYTES / _GIB:.1f} GiB, and no host has "
            f"more than {free / _GIB:.1f} GiB free",
            hint=f"Ask for at most {free // SPARE_BYTES}; as many as a host has ranks is enough.",
        )


def _free_bytes(launcher: str, agents: Agents) -> int | None:
    """Of the host with the most, all of it until it has said what it uses; None when there is no host."""
    said = []
    for agent_id in agents.alive():
        agent, beat = agents.agents[agent_id], agents.pulses.of(agent_id).report
        if agent.launcher == launcher and agent.memory_bytes:
            used = beat.host.memory_used_bytes if isinstance(beat, ag.AgentBeat) else 0
            said.append(agent.memory_bytes - used)
    return max(said, default=None)
