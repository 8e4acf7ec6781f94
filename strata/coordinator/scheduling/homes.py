"""The folders and buckets in which hosts keep checkpoints. A task that saves there runs on hosts that share one: it is
refused when it is submitted where no such set is large enough, waits for one when it is queued, and once it has saved,
it stays with hosts that see that. Changes nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.state.cluster import ClusterState
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import plan_change
from strata.coordinator.state.placement import Host, host_of
from strata.errors import InvalidArgument
from strata.storage.home import told_apart
from strata.types.tasks import BUILTIN_TYPES, TaskSpec, TaskStatus

__all__ = ["Homes", "check_homes"]

_VARIABLE = "STRATA_CHECKPOINTS_APART"
_MAX_NAMED = 8


class Homes:
    """Where the tasks of a cluster may save. An agent that does not say where it keeps checkpoints shares with all."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def home_of(self, placement: Iterable[str]) -> str:
        """The home that these agents share; empty when they do not, or nobody knows."""
        homes = {agent.checkpoints for agent in self._agents(placement) if agent.checkpoints}
        return homes.pop() if len(homes) == 1 else ""

    def apart(self, task: Task) -> dict[str, str]:
        """The variable that names the task's hosts where they do not share a home; nothing where they do, or nobody
        knows. The ranks of a task that was not refused need it: nobody knew that it saves there."""
        hosts = self._agents(dict.fromkeys(task.course.placement))
        if len({agent.checkpoints for agent in hosts if agent.checkpoints}) < 2:
            return {}
        return {_VARIABLE: _named(hosts)}

    def within_reach(self, task: Task, hosts: Sequence[Host]) -> list[Host]:
        """The hosts, of which those are marked that must not have ranks of this task: they do not see its newest
        checkpoint and would begin anew, or they do not share a home with those that will save."""
        home = self._seen_home(task)
        if not home and _saves_at_home(task.spec):
            home = task.course.home if task.status is TaskStatus.RUNNING else self._best_home(task.spec, hosts)
        if not home:
            return list(hosts)
        return [replace(host, apart=self._home(host) not in ("", home)) for host in hosts]

    def plan_wait(self, task: Task, reason: str) -> ChangeTask:
        """A task that finds no slots waits, with this reason, or with what to set where slots are there but in several
        homes: another host may come and make one of them large enough. Only when all agents are there that were
        started for this task alone, no other will come: then it has failed."""
        if not _saves_at_home(task.spec) or self._seen_home(task):
            return plan_change(task, task.status, reason)
        usable = [agent for agent in self._state.agents.agents.values() if agent.task_id in ("", task.task_id)]
        refusal = _refusal(task.spec, usable)
        if not refusal:
            return plan_change(task, task.status, reason)
        own = [agent for agent in usable if agent.task_id]
        if _slots(task.spec, _staying(task.spec, own)).total() >= task.spec.worker_count:
            return plan_change(task, TaskStatus.FAILED, f"not started: {refusal}")
        return plan_change(task, task.status, f"waiting for hosts that share a folder for checkpoints: {refusal}")

    def _seen_home(self, task: Task) -> str:
        """The home in which the task's newest checkpoint lies, or that with which a fork begins; empty when there is
        none, or it lies where a script says."""
        fork = task.spec.fork
        if not task.course.home and fork is None:
            return ""  # at once: a queue may be long, and so is the list of checkpoints
        saved = self._state.checkpoints.latest(task.task_id)
        if saved is not None:
            return _around(saved.path, task)
        parent = self._state.tasks.tasks.get(fork.task_id) if fork is not None else None
        return _around(fork.path, parent) if fork is not None and parent is not None else ""

    def _best_home(self, spec: TaskSpec, hosts: Sequence[Host]) -> str:
        """The home whose hosts have the most room for the task now, or would have it without others."""
        rooms: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for host in hosts:
            if host.launcher == spec.launcher:
                rooms[self._home(host)] += host.room(spec.gpus_per_worker)
                sizes[self._home(host)] += host.size(spec.gpus_per_worker)

        def key(home: str) -> tuple[int, int]:
            room = rooms[home] + rooms[""]
            return room if room >= spec.least_workers else 0, sizes[home]

        return max(sorted(sizes.keys() - {""}), key=key, default="")

    def _home(self, host: Host) -> str:
        return self._state.agents.agents[host.agent_id].checkpoints

    def _agents(self, names: Iterable[str]) -> list[Agent]:
        known: Mapping[str, Agent] = self._state.agents.agents
        return [known[name] for name in names if name in known]


def check_homes(spec: TaskSpec, agents: Iterable[Agent]) -> None:
    """Refuses a task over several hosts that share no home, when it is submitted."""
    refusal = _refusal(spec, [agent for agent in agents if not agent.task_id])
    if refusal:
        raise InvalidArgument(refusal)


def _refusal(spec: TaskSpec, agents: Sequence[Agent]) -> str:
    """Why a task cannot start on those of these agents that stay: together they have the slots, but none that share a
    home have, nor will when those are back that are away. Empty when it can, or waits for slots anyway."""
    if not _saves_at_home(spec):
        return ""
    staying = _staying(spec, agents)
    if _slots(spec, staying).total() < spec.least_workers:
        return ""
    slots = _slots(spec, _staying(spec, agents, away=True))
    largest = max((slots[home] for home in slots if home), default=0) + slots[""]
    return told_apart(_named(staying)) if largest < spec.least_workers else ""


def _staying(spec: TaskSpec, agents: Iterable[Agent], *, away: bool = False) -> list[Agent]:
    """Those that a task may use and that do not go; with `away`, also those that were there and may come back."""
    usable = (agent for agent in agents if agent.launcher == spec.launcher and not agent.draining)
    return [agent for agent in usable if agent.alive or away]


def _slots(spec: TaskSpec, agents: Iterable[Agent]) -> Counter[str]:
    """How many ranks each home's hosts would take if nothing ran on them."""
    slots: Counter[str] = Counter()
    for agent in agents:
        slots[agent.checkpoints] += host_of(agent, 0, excluded=False).size(spec.gpus_per_worker)
    return slots


def _named(agents: Sequence[Agent]) -> str:
    more = f" and {len(agents) - _MAX_NAMED} more" if len(agents) > _MAX_NAMED else ""
    return ", ".join(agent.hostname for agent in agents[:_MAX_NAMED]) + more


def _saves_at_home(spec: TaskSpec) -> bool:
    """What a user's command says of its script, or what the built-in trainer does."""
    return spec.saves_at_home or (not spec.entrypoint and spec.type in BUILTIN_TYPES)


def _around(path: str, task: Task) -> str:
    """The home that the task's hosts shared, if the path is inside of it."""
    home = task.course.home
    return home if home and path.startswith(f"{home.partition('#')[0]}/") else ""
