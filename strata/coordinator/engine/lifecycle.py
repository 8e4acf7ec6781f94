"""The life of a cluster as log lines: workers, barriers, checkpoints, data and tasks, each event at its level.

Listens to durable events only, so a line is never about something that did not happen. A line that is switched off is
not formatted, and what comes often is bounded: a barrier per step writes a few lines and a count.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from strata.clock import Clock
from strata.cluster import events as e
from strata.coordinator.state.cluster import ClusterState
from strata.log_budget import LineBudget
from strata.types.ranks import ranks_text
from strata.types.tasks import TaskStatus

__all__ = ["LifecycleLog"]

_log = logging.getLogger(__name__)

_MB = 1e6
_TASK_LEVELS = {TaskStatus.FAILED: logging.ERROR, TaskStatus.RECOVERING: logging.WARNING}


class _Kind(NamedTuple):
    """Lines that share a budget: what they are about, in whose task, under which name."""

    what: str
    task_id: str
    name: str = ""


class LifecycleLog:
    """Hears every event of one coordinator. `flush` writes what was held back; call it a few times a second."""

    def __init__(self, state: ClusterState, clock: Clock) -> None:
        self._state = state
        self._budget: LineBudget[_Kind] = LineBudget(clock)
        self._crowd: LineBudget[_Kind] = LineBudget(clock, burst=100)  # thousands of workers may join at once
        self._tasks: dict[str, tuple[str, int, str]] = {}
        self._writers: dict[type[e.Event], Callable[[Any], None]] = {
            e.AgentDraining: self._agent_draining,
            e.AgentJoined: self._agent_joined,
            e.AgentLost: self._agent_lost,
            e.BarrierBroke: self._barrier_broke,
            e.BarrierReleased: self._barrier_released,
            e.CheckpointAborted: self._checkpoint_aborted,
            e.CheckpointBegun: self._checkpoint_begun,
            e.CheckpointCommitted: self._checkpoint_committed,
            e.CheckpointRemoved: self._checkpoint_removed,
            e.CheckpointVerified: self._checkpoint_verified,
            e.CheckpointVoted: self._checkpoint_voted,
            e.DatasetAttached: self._dataset_attached,
            e.DatasetRegistered: self._dataset_registered,
            e.MembersLost: self._members_lost,
            e.QueueOpened: self._queue_opened,
            e.ShardsRebalanced: self._shards_rebalanced,
            e.TaskChanged: self._task_changed,
            e.TaskSubmitted: self._task_submitted,
            e.WorkerJoined: self._worker_joined,
        }

    def on_event(self, event: e.Event) -> None:
        writer = self._writers.get(type(event))
        if writer is not None:
            writer(event)

    def flush(self) -> None:
        for budget in (self._budget, self._crowd):
            for held in budget.held_back():
                kind = held.key or _Kind("events", "")
                about = f"{kind.what} {kind.name!r}" if kind.name else kind.what
                _write(logging.INFO, kind, "… and %d more: %s in %.0f s", held.count, about, held.seconds)

    # --- workers and hosts

    def _worker_joined(self, event: e.WorkerJoined) -> None:
        if _log.isEnabledFor(logging.INFO) and self._crowd.allows(_Kind("workers joined", event.task_id)):
            text = "worker %s joined as rank %d, generation %d"
            _write(logging.INFO, event, text, event.worker_id, event.rank, event.generation)

    def _members_lost(self, event: e.MembersLost) -> None:
        level, verb = (logging.INFO, "left") if event.left else (logging.ERROR, "lost")
        if not _log.isEnabledFor(level):
            return
        for worker_id, reason in zip(event.worker_ids, event.reasons, strict=True):
            if self._crowd.allows(_Kind(f"workers {verb}", event.task_id)):
                text = "worker %s %s: %s; generation %d"
                _write(level, event, text, worker_id, verb, reason, event.generation, worker_id=worker_id)

    def _agent_joined(self, event: e.AgentJoined) -> None:
        text = "agent %s joined from %s with %d slots and %d GPUs"
        _write(logging.INFO, event, text, event.agent_id, event.hostname, event.slots, event.gpu_count)

    def _agent_lost(self, event: e.AgentLost) -> None:
        level, verb = (logging.INFO, "left") if event.left else (logging.ERROR, "lost")
        _write(level, event, "agent %s %s: %s", event.agent_id, verb, event.reason)

    def _agent_draining(self, event: e.AgentDraining) -> None:
        if event.reason:
            _write(logging.WARNING, event, "agent %s goes away: %s", event.agent_id, event.reason)
        else:
            _write(logging.INFO, event, "agent %s stays after all", event.agent_id)

    # --- barriers

    def _barrier_released(self, event: e.BarrierReleased) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        kind = _Kind("barriers reached", event.task_id, event.barrier_id.rstrip("0123456789"))
        if self._budget.allows(kind):
            text = "barrier %r reached at step %d by %d workers, %.3f s after the first of them; the last was %s"
            wait_s = max(event.at - event.created_at, 0.0)
            numbers = (event.barrier_id, event.step, len(event.worker_ids), wait_s, event.worker_ids[-1])
            _write(logging.INFO, event, text, *numbers)

    def _barrier_broke(self, event: e.BarrierBroke) -> None:
        if self._budget.allows(_Kind("barriers broken", event.task_id)):
            text = "barrier %r broke at step %d with %d of %d workers there; missing: %s: %s"
            missing = ", ".join(event.missing[:5]) + (" …" if len(event.missing) > 5 else "")
            numbers = (event.barrier_id, event.step, len(event.worker_ids), event.total)
            _write(logging.WARNING, event, text, *numbers, missing or "nobody", event.reason)

    # --- checkpoints

    def _checkpoint_begun(self, event: e.CheckpointBegun) -> None:
        text = "checkpoint %s of step %d begun by ranks %s, generation %d"
        _write(logging.DEBUG, event, text, event.checkpoint_id, event.step, event.ranks, event.generation)

    def _checkpoint_voted(self, event: e.CheckpointVoted) -> None:
        task_id, step = self._attempt(event.attempt)
        text = "rank %d has written its part of step %s: %.2f MB in %.2f s"
        values = (event.rank, step, event.size_bytes / _MB, event.duration_s)
        _write(logging.DEBUG, event, text, *values, task_id=task_id)

    def _checkpoint_committed(self, event: e.CheckpointCommitted) -> None:
        if _log.isEnabledFor(logging.INFO) and self._budget.allows(_Kind("checkpoints saved", event.task_id)):
            took = "" if event.duration_s is None else f" in {event.duration_s:.2f} s"
            text = "checkpoint %r of step %d saved to %s: %.2f MB%s"
            values = (event.checkpoint_id, event.step, event.storage_path, event.size_bytes / _MB, took)
            _write(logging.INFO, event, text, *values)

    def _checkpoint_aborted(self, event: e.CheckpointAborted) -> None:
        task_id, step = self._attempt(event.attempt)
        missing = f"; missing {ranks_text(event.missing)}" if event.missing else ""
        text = "checkpoint of step %s failed: %s%s; the one before it stays the latest"
        _write(logging.WARNING, event, text, step, event.reason, missing, task_id=task_id)

    def _checkpoint_removed(self, event: e.CheckpointRemoved) -> None:
        names = ", ".join(event.checkpoint_ids)
        _write(logging.DEBUG, event, "checkpoints removed: %s: %s", names, event.reason)

    def _checkpoint_verified(self, event: e.CheckpointVerified) -> None:
        if event.damage:
            text = "checkpoint %s is damaged: %s; a recovery goes to the one before it"
            _write(logging.ERROR, event, text, event.checkpoint_id, event.damage)
        else:
            _write(logging.DEBUG, event, "checkpoint %s was read and is good", event.checkpoint_id)

    def _attempt(self, name: str) -> tuple[str, str]:
        """The task and the step of an attempt; old ones are forgotten."""
        known = self._state.checkpoints.attempts.get(name)
        return (known.task_id, str(known.step)) if known else ("", "?")

    # --- data

    def _dataset_registered(self, event: e.DatasetRegistered) -> None:
        text = "dataset %s registered: %d samples of %s in shards of %d"
        _write(logging.INFO, event, text, event.dataset_id, event.total_samples, event.path, event.shard_size)

    def _dataset_attached(self, event: e.DatasetAttached) -> None:
        group = f"task {event.task_id}" if event.task_id else "the plain workers"
        _write(logging.DEBUG, event, "dataset %s is read by %s from now on", event.dataset_id, group)

    def _shards_rebalanced(self, event: e.ShardsRebalanced) -> None:
        if _log.isEnabledFor(logging.DEBUG) and self._budget.allows(_Kind("dealings of shards", event.task_id)):
            text = "shards of %s dealt to %d ranks, generation %d"
            datasets = ", ".join(self._state.datasets.attached(event.task_id)) or "no dataset"
            _write(logging.DEBUG, event, text, datasets, len(event.ranks), event.generation)

    def _queue_opened(self, event: e.QueueOpened) -> None:
        text = "the queue of dataset %s lends epoch %d"
        _write(logging.DEBUG, event, text, event.dataset_id, event.epoch)

    # --- tasks

    def _task_submitted(self, event: e.TaskSubmitted) -> None:
        text = "task %s submitted: %r, type %s, %d workers"
        _write(logging.INFO, event, text, event.task_id, event.name, event.type, event.worker_count)

    def _task_changed(self, event: e.TaskChanged) -> None:
        """A line when the status, the attempt or the reason is new; an attempt that only gets a new reason has got
        into trouble, and is a warning."""
        now = (event.status, event.attempt, event.reason)
        before = self._tasks.get(event.task_id)
        if before == now:
            return
        status = TaskStatus(event.status)
        if status.final:
            self._tasks.pop(event.task_id, None)
        else:
            self._tasks[event.task_id] = now
        again = status is TaskStatus.RUNNING and before is not None and before[:2] == now[:2]
        level = logging.WARNING if again else _TASK_LEVELS.get(status, logging.INFO)
        _write(level, event, "task %s is %s: %s", event.task_id, event.status, event.reason)


def _write(level: int, event: e.Event | _Kind, text: str, *values: object, **ids: str) -> None:
    """One line. The task and the worker it is about are those of the event, where `ids` name no others."""
    found = {name: ids.get(name) or getattr(event, name, "") for name in ("task_id", "worker_id")}
    _log.log(level, text, *values, extra=found)
