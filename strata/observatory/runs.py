"""What is known of every run: figures from the rollup, brought up to date by live points, names from its owner and from
people, whose word wins. A run that was deleted stays unknown, whoever still speaks of it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from strata.clock import Clock
from strata.types.metrics import ACTIVE_WINDOW_S, RunInfo

__all__ = ["RunBook"]


@dataclass(slots=True)
class _Entry:
    first_ms: int | None = None
    last_ms: int | None = None
    seen_ms: int = 0
    top_step: int | None = None
    points: int = 0
    series: int = 0
    details: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    edits: dict[str, str] = field(default_factory=dict)


class RunBook:
    """All runs, newest first. Never forgets one that the store still has, unless it was deleted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self.deleted: set[str] = set()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def seen(self, run_id: str, first_ms: int, last_ms: int, top_step: int | None, points: int) -> None:
        """Live points came in; arrival counts as a sign of life even when the sender's clock is off. `top_step` is None
        when all of them are samples of the host: their steps are no steps of the training."""
        if run_id in self.deleted:
            return
        entry = self._entries.setdefault(run_id, _Entry())
        entry.first_ms = first_ms if entry.first_ms is None else min(entry.first_ms, first_ms)
        entry.last_ms = last_ms if entry.last_ms is None else max(entry.last_ms, last_ms)
        entry.top_step = _higher(entry.top_step, top_step)
        entry.points += points
        entry.seen_ms = round(self._clock.wall() * 1000)

    def set_series(self, run_id: str, count: int) -> None:
        if run_id not in self.deleted:
            self._entries.setdefault(run_id, _Entry()).series = count

    def from_store(self, rows: Iterable[dict[str, Any]]) -> None:
        """The rollup's figures: they include other writers, but may lag behind what is still in the spool."""
        for row in rows:
            if row["run_id"] in self.deleted:
                continue
            entry = self._entries.setdefault(row["run_id"], _Entry())
            entry.first_ms = min(row["first_ms"], entry.first_ms or row["first_ms"])
            entry.last_ms = max(row["last_ms"], entry.last_ms or 0)
            entry.top_step = _higher(entry.top_step, row["top_step"])
            entry.points = max(entry.points, row["points"])
            entry.series = max(entry.series, row["series"])

    def describe(self, run_id: str, details: dict[str, str], config_json: str) -> None:
        """What its owner says: name, project, task, status, configuration. Empty fields change nothing."""
        if run_id in self.deleted:
            return
        entry = self._entries.setdefault(run_id, _Entry())
        entry.details.update({name: value for name, value in details.items() if value})
        if config_json:
            try:
                config = json.loads(config_json)
            except ValueError:
                config = {"config": config_json}
            entry.config = config if isinstance(config, dict) else {"config": config}

    def edit(self, run_id: str, changes: Mapping[str, str]) -> None:
        """What somebody wrote about it; an empty name gives its own back."""
        if run_id in self._entries:
            self._entries[run_id].edits.update(changes)

    def delete(self, run_id: str) -> None:
        self._entries.pop(run_id, None)
        self.deleted.add(run_id)

    def info(self, run_id: str) -> RunInfo | None:
        entry = self._entries.get(run_id)
        return None if entry is None else self._info(run_id, entry)

    def all(self) -> list[RunInfo]:
        infos = [self._info(run_id, entry) for run_id, entry in self._entries.items()]
        return sorted(infos, key=lambda info: info.last_event_ms or 0, reverse=True)

    def of_task(self, task_id: str) -> list[str]:
        """The runs that its ranks log to; the one with the task's id when none said so."""
        mine = [run_id for run_id, entry in self._entries.items() if entry.details.get("task_id") == task_id]
        return mine or [task_id]

    def is_active(self, run_id: str) -> bool:
        entry = self._entries.get(run_id)
        return entry is not None and self._is_active(entry)

    def active(self) -> set[str]:
        return {run_id for run_id, entry in self._entries.items() if self._is_active(entry)}

    def _info(self, run_id: str, entry: _Entry) -> RunInfo:
        return RunInfo(
            run_id=run_id,
            start_ms=entry.first_ms,
            last_event_ms=entry.last_ms,
            latest_step=entry.top_step,
            is_active=self._is_active(entry),
            num_series=entry.series,
            num_points=entry.points,
            task_id=entry.details.get("task_id"),
            name=entry.edits.get("name") or entry.details.get("name"),
            project=entry.details.get("project"),
            status=entry.details.get("status"),
            notes=entry.edits.get("notes") or None,
            config=entry.config,
        )

    def _is_active(self, entry: _Entry) -> bool:
        newest = max(entry.last_ms or 0, entry.seen_ms)
        return self._clock.wall() * 1000 - newest < ACTIVE_WINDOW_S * 1000


def _higher(known: int | None, other: int | None) -> int | None:
    return max((step for step in (known, other) if step is not None), default=None)
