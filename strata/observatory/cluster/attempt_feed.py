"""Tells where attempts of tasks begin, as the coordinator has it: after the step of the checkpoint they go back to. An
attempt that began while this process was away is told of when its task is seen again.
"""

import asyncio
import uuid

from strata.clock import Clock
from strata.cluster.events import Event, TaskChanged
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.part import Part
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.live.view import LiveView
from strata.protocol.generated.telemetry_pb2 import AttemptStart, Batch
from strata.types.metrics import WORLDS
from strata.types.tasks import TaskCourse, TaskStatus

__all__ = ["AttemptFeed"]

_EVERY_S = 1.0
_BEGUN = (TaskStatus.RUNNING, TaskStatus.STOPPING)


class AttemptFeed(Part):
    """One look a second at tasks that were seen for the first time, and an ear for the coordinator's events."""

    def __init__(self, published: PublishedCluster, live: LiveView, queue: BatchQueue, clock: Clock) -> None:
        self._published = published
        self._live = live
        self._queue = queue
        self._clock = clock
        published.listeners.append(self._on_event)

    def _on_event(self, event: Event, seq: int) -> None:
        if isinstance(event, TaskChanged) and event.status == TaskStatus.RUNNING:
            self._tell(event.task_id, event.attempt, event, event.at)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._live.is_whole:
                with self._published.aside.guard("task attempts", "where attempts began"):
                    self.look()

    def look(self) -> None:
        """Also finds runs that a task has begun, or that became known, since its attempt began."""
        for task in self._published.followed.records.tasks.values():
            if task.status in _BEGUN:
                self._tell(task.task_id, task.attempt, task.course, self._clock.wall())

    def _tell(self, task_id: str, attempt: int, course: TaskCourse, at: float) -> None:
        """The first attempt does nothing again. Ranks that go on in place take a state of which no checkpoint tells:
        where they began, their points will say. The task's own id stands for its log lines, too."""
        turn = attempt * WORLDS + min(course.world, WORLDS - 1)
        if turn <= WORLDS:
            return
        starts = []
        for run_id in sorted({task_id, *self._live.runs.of_task(task_id)}):
            if self._live.attempts.has(run_id, turn):
                continue
            start = AttemptStart(run_id=run_id, attempt=attempt, world=turn % WORLDS, event_time_ms=round(at * 1000))
            if course.step >= 0 and not course.world:
                start.step = course.step + 1
            starts.append(start)
        if starts:
            self._queue.put(Batch(batch_id=f"attempt-start-{uuid.uuid4().hex}", attempts=starts))
