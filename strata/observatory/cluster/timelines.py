"""Follows what tasks go through: their attempts, kept in the store so that a restart knows them, and what their ranks
do, looked at once a second. It only watches; nothing here changes a task.
"""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

from strata.clock import Clock
from strata.cluster.events import Event, TaskChanged
from strata.errors import StoreUnavailable
from strata.observatory.answers.timeline import TaskTimeline
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.part import Part
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.timeline import Attempt, Facts, Interruption, Timeline, activity, timeline_view
from strata.observatory.store.base import Store, own_rows
from strata.protocol.generated.telemetry_pb2 import Batch, EventRow
from strata.types.plain import from_plain, to_plain
from strata.types.tasks import TaskCourse, TaskStatus

__all__ = ["ATTEMPT_KIND", "Timelines"]

ATTEMPT_KIND = "attempt_"
# What ranks were seen doing, in seconds; the newest of a task holds all of it.
_WATCHED_KIND = "attempt_watched"
# What interrupted a task, as JSON.
_INTERRUPTED_KIND = "attempt_interrupted"
_EVERY_S = 1.0
_SAVE_EVERY = 10
_MAX_TASKS = 1_000
_MAX_MEASURED = 100
# By then the last points of an attempt are in the store.
_SETTLED_S = 10.0

_PAST = """
SELECT task_id, kind, attempt, rank, step, message, toUnixTimestamp64Milli(event_time) AS ms
FROM {db}.events WHERE startsWith(kind, 'attempt_') AND kind NOT IN ('attempt_watched', 'attempt_interrupted')
ORDER BY event_time DESC LIMIT 10000
"""
_INTERRUPTED = """
SELECT task_id, message FROM {db}.events WHERE kind = 'attempt_interrupted' ORDER BY event_time DESC LIMIT 10000
"""
_WATCHED = """
SELECT task_id, argMax(message, event_time) AS message FROM {db}.events WHERE kind = 'attempt_watched' GROUP BY task_id
"""
# Host samples are no work: agents send them from the first moment on.
_POINTS = """
SELECT toUnixTimestamp64Milli(min(event_time)) AS first_ms, max(step) AS top_step, count() AS n,
       toUnixTimestamp64Milli(maxIf(event_time, step <= {back_to:Int64})) AS back_ms,
       countIf(step <= {back_to:Int64}) AS before
FROM {db}.metric_points WHERE run_id IN {runs:Array(String)} AND NOT startsWith(metric, 'sys.')
AND event_time >= fromUnixTimestamp64Milli({from_ms:Int64}) AND event_time < fromUnixTimestamp64Milli({to_ms:Int64})
"""

RunsOf = Callable[[str], list[str]]


class Timelines(Part):
    """Looks at the ranks once a second. `runs_of` names the runs of a task."""

    def __init__(
        self, published: PublishedCluster, store: Store, queue: BatchQueue, clock: Clock, runs_of: RunsOf
    ) -> None:
        self._published = published
        self._store = store
        self._queue = queue
        self._clock = clock
        self._runs_of = runs_of
        self._timelines: dict[str, Timeline] = {}
        self._facts: dict[tuple[str, int], Facts] = {}
        self._unsaved: set[str] = set()
        self.goodput: dict[str, float] = {}  # in percent, of tasks that have not ended and of which it is known
        published.listeners.append(self._on_event)

    async def load(self, store: Store) -> None:
        """Attempts before this start, oldest first, and what was seen of them."""
        for row in reversed(await own_rows(store, _PAST)):
            with self._published.aside.guard("task attempts", f"attempt {row['attempt']} of task {row['task_id']}"):
                step = -1 if row["step"] is None else row["step"]
                status = row["kind"].removeprefix(ATTEMPT_KIND)
                size = None if row["rank"] is None else row["rank"] + 1
                self._of(row["task_id"]).change(status, row["attempt"], row["message"], row["ms"] / 1000, step, size)
        for row in await own_rows(store, _WATCHED):
            with self._published.aside.guard("task attempts", f"what was seen of task {row['task_id']}"):
                seen = json.loads(row["message"])
                self._of(row["task_id"]).restore(seen["samples"], seen["watched_s"])

        for row in await own_rows(store, _INTERRUPTED):
            with self._published.aside.guard("task attempts", f"an interruption of task {row['task_id']}"):
                self._of(row["task_id"]).interrupt(from_plain(Interruption, json.loads(row["message"])))

    async def view(self, task_id: str) -> TaskTimeline:
        """Attempts and shares as of now."""
        timeline, facts = await self.known(task_id)
        return timeline_view(task_id, timeline, facts, self._clock.wall())

    async def known(self, task_id: str) -> tuple[Timeline, dict[int, Facts]]:
        """What was seen of a task, and what its points say; the store is asked only for what cannot change any more, or
        is not known."""
        timeline, task = self._of(task_id), self._published.followed.records.tasks.get(task_id)
        if task is not None:  # it may have been interrupted while this process was away
            ended = timeline.attempts[task.attempt].ended_at if task.attempt in timeline.attempts else None
            self._note(task_id, task.course, ended or task.completed_at or self._clock.wall(), in_place=False)
        facts = {}
        for number, attempt in list(timeline.attempts.items()):  # the next one may begin while the store answers
            facts[number] = await self._facts_of(task_id, attempt, timeline.attempts.get(number + 1))
        return timeline, facts

    def saved_step(self, task_id: str) -> int | None:
        saved = self._published.followed.records.checkpoints.latest(task_id)
        return None if saved is None else saved.step

    def _of(self, task_id: str) -> Timeline:
        timeline = self._timelines.get(task_id)
        if timeline is None:
            timeline = self._timelines[task_id] = Timeline()
            while len(self._timelines) > _MAX_TASKS:
                self._timelines.pop(next(iter(self._timelines)))
        return timeline

    def _on_event(self, event: Event, seq: int) -> None:
        if not isinstance(event, TaskChanged) or event.attempt < 1:
            return
        self._facts.pop((event.task_id, event.attempt), None)  # it may have ended: its end is looked at anew
        size = len(event.placement) or None
        self._of(event.task_id).change(event.status, event.attempt, event.reason, event.at, event.step, size)
        self._note(event.task_id, event, event.at, in_place=event.status == TaskStatus.RUNNING and not event.leaving)
        self._save_watched({event.task_id} & self._unsaved)
        name = f"attempt-{self._published.followed.records.cluster_id}-{seq}"
        told = {"attempt": event.attempt, **({"step": event.step} if event.step >= 0 else {})}
        if size is not None:
            told["rank"] = size - 1  # its last one
        self._save(name, f"{ATTEMPT_KIND}{event.status}", event.task_id, event.reason, event.at, **told)

    def _note(self, task_id: str, course: TaskCourse, at: float, *, in_place: bool) -> None:
        """Keeps the newest interruption, once; every later event of the task carries it along."""
        if not course.faults:
            return
        told = Interruption(
            attempt=course.faults[0].attempt,
            number=course.interruptions,
            at=at,
            faults=course.faults,
            in_place=in_place,
        )
        if self._of(task_id).interrupt(told):
            name = f"interrupted-{self._published.followed.records.cluster_id}-{task_id}-{told.attempt}-{told.number}"
            self._save(name, _INTERRUPTED_KIND, task_id, json.dumps(to_plain(told)), at)

    def _save(self, name: str, kind: str, task_id: str, message: str, at: float, **told: Any) -> None:
        at_ms = round(at * 1000)
        row = EventRow(
            id=name, event_time_ms=at_ms, kind=kind, severity="info", task_id=task_id, message=message, **told
        )
        self._queue.put(Batch(batch_id=name, events=[row]))

    def _save_watched(self, task_ids: Set[str]) -> None:
        """All that was seen of these tasks, so that a restart of this process does not make it unmeasured."""
        for task_id in task_ids:
            timeline = self._of(task_id)
            seen = json.dumps({"samples": timeline.samples, "watched_s": timeline.watched_s})
            self._save(f"watched-{uuid.uuid4().hex}", _WATCHED_KIND, task_id, seen, self._clock.wall())
        self._unsaved -= task_ids

    async def _run(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(_EVERY_S)
            looks += 1
            if self._published.connected:
                with self._published.aside.guard("task attempts", "what the ranks are doing"):
                    self.look(_EVERY_S)
            if looks % _SAVE_EVERY == 0:
                self._save_watched(set(self._unsaved))
                with self._published.aside.guard("task attempts", "their goodput"):
                    await self.measure()

    async def measure(self) -> None:
        """The goodput of tasks that work, the newest of them where there are very many: each may ask the store."""
        tasks = self._published.followed.records.tasks.values()
        going = [task.task_id for task in tasks if task.attempt and not task.status.final]
        views = [await self.view(task_id) for task_id in going[-_MAX_MEASURED:]]
        self.goodput = {one.task_id: one.goodput_percent for one in views if one.goodput_percent is not None}

    def look(self, seconds: float) -> None:
        """What the ranks of every working task are doing now. A rank that has not reached a step yet does not work."""
        cluster = self._published.followed
        doing: dict[str, Counter[str]] = {}
        for worker in cluster.records.workers.values():
            vitals = cluster.vitals_of(worker.worker_id)
            task = cluster.records.tasks.get(worker.task_id)
            works = task is not None and task.status in (TaskStatus.RUNNING, TaskStatus.STOPPING)
            if works and worker.alive and vitals.current_step:
                doing.setdefault(worker.task_id, Counter())[activity(vitals)] += 1
        for task_id, counts in doing.items():
            self._of(task_id).watch(counts, seconds)
            self._unsaved.add(task_id)

    async def _facts_of(self, task_id: str, attempt: Attempt, following: Attempt | None) -> Facts:
        key = (task_id, attempt.number)
        known = self._facts.get(key)
        if known is not None:
            return known if attempt.ended_at is not None else self._so_far(task_id, known)
        back_to = following.resume_step if following is not None else self.saved_step(task_id)
        until = attempt.ended_at if attempt.ended_at is not None else self._clock.wall()
        where = {
            "runs": self._runs_of(task_id),
            "back_to": -1 if back_to is None else back_to,
            "from_ms": round(attempt.started_at * 1000),
            "to_ms": round(until * 1000) + 1,
        }
        try:
            row = (await self._store.query(_POINTS, where)).to_rows()[0]
        except StoreUnavailable:
            return Facts()
        if not row["n"]:
            return Facts()
        facts = Facts(
            working_at=row["first_ms"] / 1000,
            top_step=row["top_step"],
            resumed_step_at=row["back_ms"] / 1000 if row["before"] else None,
        )
        decided = following is not None or attempt.status != "recovering"
        if attempt.ended_at is None or (decided and self._clock.wall() - attempt.ended_at > _SETTLED_S):
            self._facts[key] = facts  # every point of the run is looked at once per attempt, not once per page
        return facts

    def _so_far(self, task_id: str, first: Facts) -> Facts:
        """The facts of an attempt that still runs: its first point stays, its top step is what its ranks report now."""
        cluster = self._published.followed
        mine = [worker.worker_id for worker in cluster.records.workers.values() if worker.task_id == task_id]
        steps = [cluster.vitals_of(name).current_step or 0 for name in mine]
        return replace(first, top_step=max(steps, default=0) or first.top_step)
