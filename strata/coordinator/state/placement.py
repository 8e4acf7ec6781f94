"""Where a gang of ranks goes, and what is lacking when it goes nowhere. Pure: starts and stops nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from strata.cluster.members import Agent
from strata.cluster.tasks import Task

__all__ = ["Host", "Lacking", "host_of", "num_spare", "plan_gang", "plan_queue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent that takes ranks: how many slots it offers, and how many of them are held now. One that is
    draining takes none, nor does one that the task to be placed has left because it was slow, nor one that does not
    see its checkpoints."""

    agent_id: str
    address: str
    slots: int
    held: int = 0
    launcher: str = "local"
    draining: bool = False
    excluded: bool = False
    apart: bool = False

    @property
    def free(self) -> int:
        return 0 if self.draining or self.excluded or self.apart else max(0, self.slots - self.held)


def host_of(agent: Agent, held: int, excluded: bool) -> Host:
    return Host(
        agent_id=agent.agent_id,
        address=agent.address,
        slots=agent.slots,
        held=held,
        launcher=agent.launcher,
        draining=bool(agent.draining),
        excluded=excluded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Why a gang cannot be placed now; `ever` is False when all slots together would not do."""

    reason: str
    ever: bool


def plan_gang(
    num_ranks: int, launcher: str, hosts: Sequence[Host], before: Sequence[str] = (), *, least: int = 0
) -> tuple[str, ...] | Lacking:
    """The agent of each rank: all ranks are placed, or none; with `least`, as many as there are free slots for, down to
    that. Ranks go back to the hosts they had `before` where those have room; else on as few hosts as will do,
    neighbours together."""
    usable = [host for host in hosts if host.launcher == launcher]
    free = {host.agent_id: host.free for host in usable}
    least = least or num_ranks
    size = min(num_ranks, sum(free.values()))
    if size < least:
        return _lacking(least, launcher, usable)
    kept = [*_keep(before[:size], free), *[None] * (size - len(before))]
    rest = sorted(
        (host for host in usable if free[host.agent_id]), key=lambda host: (-free[host.agent_id], host.agent_id)
    )
    spare = [host.agent_id for host in rest for _ in range(free[host.agent_id])]
    filled = iter(spare)
    return tuple(agent if agent is not None else next(filled) for agent in kept)


def _keep(before: Sequence[str], free: dict[str, int]) -> list[str | None]:
    """The old host of each rank where it has room; takes that room out of `free`."""
    kept: list[str | None] = []
    for agent_id in before:
        room = free.get(agent_id, 0)
        kept.append(agent_id if room else None)
        if room:
            free[agent_id] = room - 1
    return kept


def _lacking(num_ranks: int, launcher: str, usable: Sequence[Host]) -> Lacking:
    slots = sum(host.slots for host in usable)
    free = sum(host.free for host in usable)
    ranks = f"{num_ranks} slot{'s' if num_ranks > 1 else ''}"
    if not usable:
        advice = ": start one with `strata agent`" if launcher == "local" else ""
        return Lacking(reason=f"waiting for {ranks}: no {launcher} agent is attached{advice}", ever=False)
    on = f"{len(usable)} {launcher} agent{'s' if len(usable) > 1 else ''}"
    if slots < num_ranks:
        offer = f"{on} offer{'' if len(usable) > 1 else 's'} {slots}"
        advice = (
            f"add hosts (`strata agent`), start Strata with --slots {num_ranks}, or ask for at most {slots} workers"
        )
        return Lacking(reason=f"needs {ranks}, {offer}: {advice}", ever=False)
    going = ", ".join(host.agent_id for host in usable if host.draining)
    away = f"; {going} is draining" if going else ""
    blind = ", ".join(host.agent_id for host in usable if host.apart)
    away += f"; its checkpoints are in a folder that {blind} does not share" if blind else ""
    return Lacking(reason=f"waiting for {ranks}: {free} of {slots} are free on {on}{away}", ever=True)


def num_spare(launcher: str, hosts: Sequence[Host], queued: Iterable[Task], size: int) -> int:
    """How many free slots an elastic task may have, of which it needs `size`: those that no queued task needs which
    could run beside it. Who cannot run beside it has to wait for its end, however small it stays."""
    usable = [host for host in hosts if host.launcher == launcher]
    spare, slots = sum(host.free for host in usable), sum(host.slots for host in usable) - size
    for task in queued:
        if task.spec.launcher == launcher and task.spec.least_workers <= slots:
            spare, slots = spare - task.spec.least_workers, slots - task.spec.least_workers
    return spare


def plan_queue(queued: Iterable[Task], hosts: Sequence[Host]) -> dict[str, tuple[str, ...] | Lacking]:
    """First come, first served: a task that fits the cluster but not now holds back those behind it, so that it is
    not starved; one that the cluster is too small for holds back nobody. An elastic task gets the least that it asks
    for, and more of what nobody behind it needs."""
    planned: dict[str, tuple[str, ...] | Lacking] = {}
    blocked: dict[str, str] = {}
    current = {host.agent_id: host for host in hosts}
    waiting = list(queued)
    for place, task in enumerate(waiting):
        launcher = task.spec.launcher
        if launcher in blocked:
            planned[task.task_id] = Lacking(reason=f"waiting behind task {blocked[launcher]}", ever=True)
            continue
        now, least = list(current.values()), task.spec.least_workers
        plan = plan_gang(least, launcher, now)
        if isinstance(plan, tuple) and least < task.spec.worker_count:
            spare = num_spare(launcher, now, waiting[place + 1 :], least)
            plan = plan_gang(max(least, min(task.spec.worker_count, spare)), launcher, now)
        planned[task.task_id] = plan
        if isinstance(plan, Lacking):
            if plan.ever:
                blocked[launcher] = task.task_id
            continue
        for agent_id in plan:
            current[agent_id] = replace(current[agent_id], held=current[agent_id].held + 1)
    return planned
