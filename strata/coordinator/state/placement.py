"""Where a gang of ranks goes, and what is lacking when it goes nowhere. Pure: starts and stops nothing."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.errors import InvalidArgument
from strata.types.tasks import TaskSpec

__all__ = ["Host", "Lacking", "check_gpus", "host_of", "num_gpus", "num_spare", "plan_gang", "plan_queue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent that takes ranks: how many slots and GPUs it offers, and how many of them are held now. One that is
    draining takes none, nor does one that the task to be placed has left because it was slow, nor one that does not
    see its checkpoints. One that was started for a task (`task_id`) takes no other."""

    agent_id: str
    address: str
    slots: int
    held: int = 0
    launcher: str = "local"
    task_id: str = ""
    draining: bool = False
    excluded: bool = False
    apart: bool = False
    gpus: int = 0
    gpus_held: int = 0

    @property
    def free(self) -> int:
        """How many ranks without GPUs it takes now."""
        return self.room(0)

    def room(self, gpus: int) -> int:
        """How many ranks with so many GPUs each it takes now."""
        if self.draining or self.excluded or self.apart:
            return 0
        return _fitting(self.slots - self.held, self.gpus - self.gpus_held, gpus)

    def size(self, gpus: int) -> int:
        """How many it would take if nothing ran on it."""
        return _fitting(self.slots, self.gpus, gpus)

    def hold(self, gpus: int, num_ranks: int) -> "Host":
        """As it is with so many such ranks more."""
        return replace(self, held=self.held + num_ranks, gpus_held=self.gpus_held + gpus * num_ranks)


def _fitting(slots: int, cards: int, gpus: int) -> int:
    return max(0, min(slots, cards // gpus) if gpus else slots)


def host_of(agent: Agent, held: int, excluded: bool, gpus_held: int = 0) -> Host:
    return Host(
        agent_id=agent.agent_id,
        address=agent.address,
        slots=agent.slots,
        held=held,
        launcher=agent.launcher,
        task_id=agent.task_id,
        draining=bool(agent.draining),
        excluded=excluded,
        gpus=agent.gpu_count,
        gpus_held=gpus_held,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Why a gang cannot be placed now; `ever` is False when all slots together would not do."""

    reason: str
    ever: bool


def plan_gang(
    num_ranks: int, launcher: str, hosts: Sequence[Host], before: Sequence[str] = (), *, least: int = 0, gpus: int = 0
) -> tuple[str, ...] | Lacking:
    """The agent of each rank, which has a slot there and so many `gpus`: all ranks are placed, or none; with `least`,
    as many as there is room for, down to that. Ranks go back to the hosts they had `before` where those have room; else
    on as few hosts as will do, neighbours together."""
    usable = [host for host in hosts if host.launcher == launcher]
    free = {host.agent_id: host.room(gpus) for host in usable}
    least = least or num_ranks
    size = min(num_ranks, sum(free.values()))
    if size < least:
        return _lacking(least, launcher, usable, gpus)
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


def _lacking(num_ranks: int, launcher: str, usable: Sequence[Host], gpus: int) -> Lacking:
    slots, seeing = sum(host.size(gpus) for host in usable), sum(host.size(gpus) for host in usable if not host.apart)
    free = sum(host.room(gpus) for host in usable)
    each = f" with {num_gpus(gpus)}{' each' if num_ranks > 1 else ''}" if gpus else ""
    ranks = f"{num_ranks} slot{'s' if num_ranks > 1 else ''}{each}"
    if not usable:
        advice = ": start one with `strata agent`" if launcher == "local" else ""
        return Lacking(reason=f"waiting for {ranks}: no {launcher} agent is attached{advice}", ever=False)
    on = f"{len(usable)} {launcher} agent{'s' if len(usable) > 1 else ''}"
    if slots < num_ranks:
        offer = f"{on} offer{'' if len(usable) > 1 else 's'} {slots}"
        more = "" if gpus else f" start Strata with --slots {num_ranks},"
        advice = f"add hosts (`strata agent`),{more} or ask for at most {slots} workers"
        return Lacking(reason=f"needs {ranks}, {offer}: {advice}", ever=False)
    going = ", ".join(host.agent_id for host in usable if host.draining)
    away = f"; {going} is draining" if going else ""
    blind = ", ".join(host.agent_id for host in usable if host.apart)
    away += f"; its checkpoints are in a folder that {blind} does not share" if blind else ""
    return Lacking(reason=f"waiting for {ranks}: {free} of {slots} are free on {on}{away}", ever=seeing >= num_ranks)


def check_gpus(spec: TaskSpec, agents: Iterable[Agent]) -> None:
    """Refuses a rank with more GPUs than any host has that is there now. How many ranks there is room for is no reason
    to refuse: hosts may still come, and where there is none yet, they will."""
    open_to_all = (agent for agent in agents if agent.alive and not agent.task_id)
    usable = [agent for agent in open_to_all if agent.launcher == spec.launcher]
    if not spec.gpus_per_worker or not usable:
        return
    best = max(usable, key=lambda agent: agent.gpu_count)
    if not best.gpu_count:
        raise InvalidArgument(
            f"a worker cannot have {num_gpus(spec.gpus_per_worker)}: no host has any that its driver shows",
            hint="`strata doctor` says on each host what is seen there. Or leave out gpus_per_worker.",
        )
    if best.gpu_count < spec.gpus_per_worker:
        raise InvalidArgument(
            f"a worker cannot have {num_gpus(spec.gpus_per_worker)}: {best.hostname} has the most, {best.gpu_count}",
            hint=f"Ask for at most {best.gpu_count} per worker, and for more workers.",
        )


def num_gpus(number: int) -> str:
    return f"{number} GPU{'s' if number > 1 else ''}"


def num_spare(spec: TaskSpec, hosts: Sequence[Host], queued: Iterable[Task], size: int) -> int:
    """How many ranks there is room for of an elastic task, which needs `size`: room that no queued task needs which
    could run beside it. Who cannot run beside it has to wait for its end, however small it stays; nobody else may run
    on agents of its own."""
    gpus = spec.gpus_per_worker
    usable = [host for host in hosts if host.launcher == spec.launcher]
    spare = sum(host.room(gpus) for host in usable)
    slots = sum(host.size(gpus) for host in usable if not host.task_id) - size
    for other in (task.spec for task in queued if task.spec.launcher == spec.launcher):
        # A rank with more GPUs than ours has takes the room of several, wherever it goes.
        needed = other.least_workers * max(1, math.ceil(other.gpus_per_worker / gpus) if gpus else 1)
        if needed <= slots:
            spare, slots = spare - needed, slots - needed
    return spare


def _unmarked(_: Task, hosts: list[Host]) -> list[Host]:
    return hosts


def plan_queue(
    queued: Iterable[Task], hosts: Sequence[Host], marked: Callable[[Task, list[Host]], list[Host]] = _unmarked
) -> dict[str, tuple[str, ...] | Lacking]:
    """First come, first served: a task that fits the cluster but not now holds back those behind it, so that it is
    not starved; one that the cluster is too small for holds back nobody. An elastic task gets the least that it asks
    for, and more of what nobody behind it needs. `marked` gives the hosts as a task finds them."""
    planned: dict[str, tuple[str, ...] | Lacking] = {}
    blocked: dict[str, str] = {}
    current = {host.agent_id: host for host in hosts}
    waiting = list(queued)
    owners = {host.task_id for host in current.values() if host.task_id}
    for place, task in enumerate(waiting):
        launcher, has_own = task.spec.launcher, task.task_id in owners
        if launcher in blocked and not has_own:  # before a look at the hosts: the queue may be long, and they many
            planned[task.task_id] = Lacking(reason=f"waiting behind task {blocked[launcher]}", ever=True)
            continue
        now = marked(task, [host for host in current.values() if host.task_id in ("", task.task_id)])
        least, gpus = task.spec.least_workers, task.spec.gpus_per_worker
        plan = plan_gang(least, launcher, now, gpus=gpus)
        if isinstance(plan, tuple) and least < task.spec.worker_count:
            spare = num_spare(task.spec, now, waiting[place + 1 :], least)
            plan = plan_gang(max(least, min(task.spec.worker_count, spare)), launcher, now, gpus=gpus)
        planned[task.task_id] = plan
        if isinstance(plan, Lacking):
            if plan.ever and not has_own:
                blocked[launcher] = task.task_id
            continue
        for agent_id, num_ranks in Counter(plan).items():
            current[agent_id] = current[agent_id].hold(gpus, num_ranks)
    return planned
