"""What should run on each host, told to its agent whenever that has changed. Decides nothing. An agent that comes back
costs what its own ranks cost, and a change of a large task is told in slices, between which the loop serves others.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

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
        self._told: dict[str, Collection[str]] = {}  # by task: who was last told of it
        self._version = 0

    # --- who listens

    @property
    def attached(self) -> Collection[str]:
        return self._agents.keys()

    def attach(self, agent_id: str, push: Push) -> None:
        """A newer stream of the same agent replaces the older one."""
        self._agents[agent_id] = push
        self._sent.pop(agent_id, None)
        self._stale.add(agent_id)

    def detach(self, agent_id: str, push: Push) -> bool:
        """Forgets this stream. Returns False when a newer one has taken its place already."""
        if self._agents.get(agent_id) != push:  # not `is`: a bound method is a new object each time it is named
            return False
        del self._agents[agent_id]
        return True

    # --- what has changed

    def note_task(self, task_id: str) -> None:
        self._changed.add(task_id)

    def note_agent(self, agent_id: str) -> None:
        self._stale.add(agent_id)

    def launch_of(self, task: Task) -> Launch:
        """Kept as long as the task's record is the same."""
        known = self._launches.get(task.task_id)
        if known is None or known.task is not task:
            known = self._launches[task.task_id] = self._launch(task)
        return known

    # --- telling

    async def tell(self, tasks: Mapping[str, Task], agents: Mapping[str, Agent], term: int) -> None:
        """Tells the agents for which something has changed, by these records, which are durable. What changes meanwhile
        is told the next time."""
        if not self._stale and not self._changed:
            return
        tasks, agents = dict(tasks), dict(agents)
        launches = {name: self.launch_of(task) for name, task in tasks.items() if not task.status.final}
        for task_id in self._changed:
            self._stale.update(self._told.get(task_id, ()))
            if task_id in launches:
                self._stale.update(launches[task_id].agents)
        if self._changed:
            self._stale.update(agent_id for agent_id, agent in agents.items() if agent.task_id in self._changed)
        self._launches = launches
        self._told = {task_id: launch.agents for task_id, launch in launches.items()}
        stale = [agent_id for agent_id in self._stale if agent_id in self._agents]
        self._stale, self._changed = set(), set()
        for number, agent_id in enumerate(stale, start=1):
            processes = [one for each in launches.values() for one in each.processes_on(agent_id, self._look_of)]
            self._send(agent_id, desired_state(agents.get(agent_id), tasks, processes), term)
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
