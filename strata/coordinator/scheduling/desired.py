"""What should run on each host, told to its agent whenever that has changed. Decides nothing. An agent that comes back
costs what its own ranks cost, and a change of a large task is told in slices, between which the loop serves others.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Set

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.launch import Launch, desired_state
from strata.protocol.generated import agents_pb2 as ag

__all__ = ["DesiredStates", "Push"]

_SLICE = 16  # agents that are told in one turn of the loop: with eight ranks each that takes 5 ms

Push = Callable[[ag.DesiredState], None]


class DesiredStates:
    """By agent, of those whose streams are open. `launch` works out what the ranks of a task are told, `look_of` by
    which word an agent is asked where a rank stands."""

    def __init__(self, launch: Callable[[Task], Launch], look_of: Callable[[Task, int], str]) -> None:
        self._launch = launch
        self._look_of = look_of
        self._agents: dict[str, Push] = {}
        self._sent: dict[str, bytes] = {}
        self._stale: set[str] = set()  # agents for which something may have changed
        self._changed: set[str] = set()  # tasks
        self._launches: dict[str, Launch] = {}
        self._tasks_on: dict[str, dict[str, None]] = {}  # agent → the tasks of which ranks are there
        self._away: dict[str, set[str]] = {}  # task → the agents of its ranks that are not attached
        self._told: dict[str, Set[str]] = {}  # by task: who was last told of it
        self._version = 0

    # --- who listens

    @property
    def attached(self) -> Set[str]:
        return self._agents.keys()

    def attach(self, agent_id: str, push: Push) -> None:
        """A newer stream of the same agent replaces the older one."""
        self._agents[agent_id] = push
        self._sent.pop(agent_id, None)
        self._stale.add(agent_id)
        for task_id in self._tasks_on.get(agent_id, ()):
            self._away[task_id].discard(agent_id)

    def detach(self, agent_id: str, push: Push) -> bool:
        """Forgets this stream. Returns False when a newer one has taken its place already."""
        if self._agents.get(agent_id) != push:  # not `is`: a bound method is a new object each time it is named
            return False
        del self._agents[agent_id]
        for task_id in self._tasks_on.get(agent_id, ()):
            self._away[task_id].add(agent_id)
        return True

    def away(self, task: Task) -> Set[str]:
        """The agents of its ranks that are not attached."""
        self.launch_of(task)
        return self._away[task.task_id]

    # --- what has changed

    def note_task(self, task_id: str) -> None:
        self._changed.add(task_id)

    def note_agent(self, agent_id: str) -> None:
        self._stale.add(agent_id)

    def launch_of(self, task: Task) -> Launch:
        """Kept as long as the task's record is the same."""
        known = self._launches.get(task.task_id)
        if known is None or known.task is not task:
            known = self._launch(task)
            self._note_launch(task.task_id, known)
        return known

    def _note_launch(self, task_id: str, launch: Launch | None) -> None:
        """What ranks are where is known by agent, too."""
        before = self._launches.pop(task_id, None)
        old: Set[str] = before.agents if before is not None else frozenset()
        new: Set[str] = launch.agents if launch is not None else frozenset()
        for agent_id in old - new:
            self._tasks_on[agent_id].pop(task_id)
            if not self._tasks_on[agent_id]:
                del self._tasks_on[agent_id]
        for agent_id in new - old:
            self._tasks_on.setdefault(agent_id, {})[task_id] = None
        self._away.pop(task_id, None)
        if launch is not None:
            self._launches[task_id] = launch
            self._away[task_id] = set(new - self._agents.keys())

    # --- telling

    async def tell(self, tasks: Iterable[Task], agents: Mapping[str, Agent], term: int) -> None:
        """Tells the agents for which something has changed, by these records, which are durable; `tasks` are those that
        are not over. What changes meanwhile is told the next time."""
        if not self._stale and not self._changed:
            return
        launches = {task.task_id: self.launch_of(task) for task in tasks}
        for task_id in self._launches.keys() - launches.keys():
            self._note_launch(task_id, None)
        for task_id in self._changed:
            self._stale.update(self._told.get(task_id, ()))
            if task_id in launches:
                self._stale.update(launches[task_id].agents)
        if self._changed:
            self._stale.update(agent_id for agent_id, agent in agents.items() if agent.task_id in self._changed)
        self._told = {task_id: launch.agents for task_id, launch in launches.items()}
        stale = [(agent_id, agents.get(agent_id)) for agent_id in self._stale if agent_id in self._agents]
        self._stale, self._changed = set(), set()
        for number, (agent_id, agent) in enumerate(stale, start=1):
            own = [launches[task_id] for task_id in self._tasks_on.get(agent_id, ())]
            processes = [one for launch in own for one in launch.processes_on(agent_id, self._look_of)]
            over = agent is not None and bool(agent.task_id) and agent.task_id not in launches
            self._send(agent_id, desired_state(agent, processes, over=over), term)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    def _send(self, agent_id: str, desired: ag.DesiredState, term: int) -> None:
        push = self._agents.get(agent_id)
        content = desired.SerializeToString(deterministic=True)
        if push is None or self._sent.get(agent_id) == content:
            return
        self._sent[agent_id] = content
        self._version += 1
        desired.version = (term << 32) + self._version
        push(desired)
