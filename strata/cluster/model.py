"""The cluster's public records, and the one rule that makes them of events. Pure: the coordinator evolves them as it
decides, the observatory as it follows, and both have the same records after the same events.

How much is kept of what is over is decided here, for everybody.
"""

from dataclasses import replace

from strata.cluster import events as e
from strata.cluster.barriers import BarrierEnd, ended_barrier
from strata.cluster.checkpoints import CheckpointRecords
from strata.cluster.datasets import Dataset, registered_dataset
from strata.cluster.gone import Gone
from strata.cluster.members import Agent, Group, Worker
from strata.cluster.queues import QueueRecords
from strata.cluster.tasks import Task, changed_task, submitted_task
from strata.cluster.tokens import TokenRecords
from strata.types.plain import shared
from strata.types.workers import MemberState

__all__ = ["KEEP_BARRIERS", "KEEP_GONE", "Cluster"]

KEEP_GONE = 1_000  # workers that are lost or have left
KEEP_BARRIERS = 200  # rounds that have ended
_KEEP_STARTS = 1_000  # of coordinators


class Cluster:
    """Records by id. Only `evolve` changes them. An event about a record that is not here (it was forgotten, or nobody
    could read it) changes nothing else."""

    def __init__(self) -> None:
        self.cluster_id = ""
        self.term = 0
        self.started_at = 0.0
        self.starts: dict[int, int] = {}  # term → the last record before it
        self.workers: dict[str, Worker] = {}
        self.gone = Gone()
        self.groups: dict[str, Group] = {"": Group(task_id="")}
        self.agents: dict[str, Agent] = {}
        self.datasets: dict[str, Dataset] = {}
        self.tasks: dict[str, Task] = {}
        self.checkpoints = CheckpointRecords()
        self.barriers: dict[str, BarrierEnd] = {}
        self.queues = QueueRecords(self.datasets)
        self.tokens = TokenRecords()

    def evolve(self, event: e.Event) -> None:
        """Makes one event true, live and on replay."""
        match event:
            case e.BarrierReleased() | e.BarrierBroke():
                self._end_barrier(event)
            case e.WorkerJoined():
                self._join(event)
            case e.MembersLost():
                self._lose(event)
            case e.AgentJoined():
                joined = Agent(**shared(Agent, event), joined_at=event.at)
                self.agents[event.agent_id] = _still_draining(joined, self.agents.get(event.agent_id))
            case e.AgentDraining():
                agent = self.agents.get(event.agent_id)
                if agent is not None:
                    self.agents[event.agent_id] = replace(
                        agent, draining=event.reason, deadline=event.deadline, noticed=event.noticed
                    )
            case e.AgentLost():
                agent = self.agents.get(event.agent_id)
                if agent is not None:
                    self.agents[event.agent_id] = replace(agent, state=_gone(left=event.left), reason=event.reason)
            case e.DatasetRegistered():
                self.datasets[event.dataset_id] = registered_dataset(event)
            case e.TaskSubmitted():
                self.tasks[event.task_id] = submitted_task(event)
                group = self.groups.get(event.task_id) or Group(task_id=event.task_id, size=event.worker_count)
                self.groups[event.task_id] = group
            case e.TaskChanged():
                task = self.tasks.get(event.task_id)
                if task is not None:
                    task = self.tasks[event.task_id] = changed_task(task, event)
                    group = self.world(event.task_id)
                    if group.size != task.size:  # else it stays the same object, by which others see that nobody came
                        self.groups[event.task_id] = replace(group, size=task.size)
            case e.ClusterStarted():
                self._start(event)
            case _:
                self.checkpoints.evolve(event)
        self.queues.evolve(event)
        self.tokens.evolve(event)

    def world(self, task_id: str) -> Group:
        """The group, also one that nobody has joined yet."""
        return self.groups.get(task_id) or Group(task_id=task_id)

    def has_forgotten(self, term: int, seq: int) -> bool:
        """Whether this record, which was told in that term, was not there when the next one began."""
        after = self.starts.get(term + 1)
        return after is not None and seq > after

    def _start(self, event: e.ClusterStarted) -> None:
        self.cluster_id, self.term, self.started_at = event.cluster_id, event.term, event.started_at
        if event.after is not None:
            self.starts[event.term] = event.after
        if len(self.starts) > _KEEP_STARTS:
            del self.starts[next(iter(self.starts))]

    def _join(self, event: e.WorkerJoined) -> None:
        self.groups[event.task_id] = replace(self.world(event.task_id), generation=event.generation)
        self.workers[event.worker_id] = Worker(**shared(Worker, event), joined_at=event.at)
        self.gone.discard(event.worker_id)

    def _lose(self, event: e.MembersLost) -> None:
        group = self.world(event.task_id)
        self.groups[event.task_id] = replace(group, generation=event.generation, fence=event.generation)
        state = _gone(left=event.left)
        for worker_id, reason in zip(event.worker_ids, event.reasons, strict=True):
            worker = self.workers.get(worker_id)
            if worker is not None:
                self.workers[worker_id] = replace(worker, state=state, reason=reason, ended_at=event.at)
                self.gone.add(worker_id, event.at)
        for worker_id in self.gone.take_beyond(KEEP_GONE):
            del self.workers[worker_id]

    def _end_barrier(self, event: e.BarrierReleased | e.BarrierBroke) -> None:
        ended = ended_barrier(event)
        self.barriers.pop(ended.key, None)
        self.barriers[ended.key] = ended
        if len(self.barriers) > KEEP_BARRIERS:
            del self.barriers[next(iter(self.barriers))]


def _gone(*, left: bool) -> MemberState:
    return MemberState.LEFT if left else MemberState.LOST


def _still_draining(agent: Agent, before: Agent | None) -> Agent:
    """What somebody decided about a host holds for its next agent, too; what the agent itself said, it says again."""
    if before is None or not before.draining or before.noticed:
        return agent
    return replace(agent, draining=before.draining, deadline=before.deadline)
