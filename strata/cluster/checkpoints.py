"""Checkpoints as records: every one that the cluster has heard of, oldest first, within its limits."""

from collections.abc import Mapping
from dataclasses import replace

from strata.cluster import events as e
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.plain import shared

__all__ = ["KEEP_CHECKPOINTS", "KEEP_REMOVED", "CheckpointRecords", "committed_checkpoint"]

KEEP_CHECKPOINTS = 2_000
# Retention removes one per save, for as long as a task runs; the metric store keeps them all.
KEEP_REMOVED = 100


class CheckpointRecords:
    """`attempts` names the checkpoint that each open attempt saves."""

    def __init__(self) -> None:
        self.records: dict[str, CheckpointInfo] = {}
        self.attempts: dict[str, str] = {}
        self._latest: dict[str, CheckpointInfo] | None = None  # of each task, until a complete one changes

    def latest(self, task_id: str) -> CheckpointInfo | None:
        """The completed checkpoint that a task would go back to."""
        return self.latest_by_task().get(task_id)

    def latest_by_task(self) -> Mapping[str, CheckpointInfo]:
        """Of every task that has one; plain workers' under an empty name."""
        if self._latest is None:
            found: dict[str, CheckpointInfo] = {}
            for record in self.records.values():
                if record.status is CheckpointStatus.COMPLETED:
                    known = found.get(record.task_id or "")
                    if known is None or record.recovery_order > known.recovery_order:
                        found[record.task_id or ""] = record
            self._latest = found
        return self._latest

    def completed_at(self, path: str, task_id: str) -> tuple[str, ...]:
        """The ids of a task's completed checkpoints at this path."""
        return tuple(
            record.id
            for record in self.records.values()
            if record.path == path and (record.task_id or "") == task_id and record.status is CheckpointStatus.COMPLETED
        )

    def find(self, checkpoint_id: str, path: str) -> CheckpointInfo | None:
        """A completed one; by where it lies when it has another id here, which an earlier release gave it."""
        done = [record for record in self.records.values() if record.status is CheckpointStatus.COMPLETED]
        named = [record for record in done if record.id == checkpoint_id]
        return next(iter([*named, *(record for record in done if path and record.path == path)]), None)

    def evolve(self, event: e.Event) -> None:
        match event:
            case e.CheckpointBegun():
                self.attempts[event.attempt] = event.checkpoint_id
                self.keep(_info(event, CheckpointStatus.IN_PROGRESS))
            case e.CheckpointVoted():
                record = self._of_attempt(event.attempt)
                if record is not None:
                    self.keep(replace(record, size_bytes=record.size_bytes + event.size_bytes))
            case e.CheckpointAborted():
                record = self._of_attempt(event.attempt)
                self.attempts.pop(event.attempt, None)
                if record is not None:
                    self.keep(replace(record, status=CheckpointStatus.FAILED, reason=event.reason))
            case e.CheckpointCommitted():
                self.attempts.pop(event.attempt, None)
                self.keep(committed_checkpoint(event))
            case e.CheckpointVerified():
                record = self.records.get(event.checkpoint_id)
                if record is not None:
                    self.keep(record.checked(event.damage, event.at))
            case e.CheckpointRemoved():
                for name in event.checkpoint_ids:
                    if name in self.records:
                        gone = replace(self.records[name], status=CheckpointStatus.REMOVED, reason=event.reason)
                        self.records[name] = gone
                self.trim()
            case _:
                pass

    def keep(self, record: CheckpointInfo) -> None:
        before = self.records.get(record.id, record)
        if CheckpointStatus.COMPLETED in (before.status, record.status):  # else a vote: there may be thousands
            self._latest = None
        self.records[record.id] = record
        if len(self.records) > KEEP_CHECKPOINTS:
            self.trim()

    def trim(self) -> None:
        """Forgets the oldest beyond the limits. The one that a task would go back to is never forgotten."""
        self._latest = None
        removed = [name for name, record in self.records.items() if record.status is CheckpointStatus.REMOVED]
        for name in removed[:-KEEP_REMOVED]:
            del self.records[name]
        surplus = len(self.records) - KEEP_CHECKPOINTS
        if surplus > 0:
            needed = {record.id for record in self.latest_by_task().values()}
            for name in [name for name in self.records if name not in needed][:surplus]:
                del self.records[name]

    def _of_attempt(self, attempt: str) -> CheckpointInfo | None:
        return self.records.get(self.attempts.get(attempt, ""))


def committed_checkpoint(event: e.CheckpointCommitted) -> CheckpointInfo:
    return _info(event, CheckpointStatus.COMPLETED)


def _info(event: e.CheckpointBegun | e.CheckpointCommitted, status: CheckpointStatus) -> CheckpointInfo:
    told = {"size_bytes": 0, **shared(CheckpointInfo, event), "task_id": event.task_id or None}
    return CheckpointInfo(id=event.checkpoint_id, path=event.storage_path, created_at=event.at, status=status, **told)
