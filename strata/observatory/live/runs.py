"""What is known of every run: figures from the rollup, brought up to date by live points, names from its owner and from
people, whose word wins. A run that was deleted stays unknown, whoever still speaks of it.
"""

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import psutil

from strata.clock import Clock
from strata.observatory.answers.runs import AttemptBegan, RunInfo, RunOrigin
from strata.observatory.live.run_entry import RunEntry
from strata.observatory.live.run_state import LOOK_S, RunFacts, RunVerdict, plan_state, said_end
from strata.protocol.generated.telemetry_pb2 import RunInfo as RunMessage
from strata.types.metrics import ACTIVE_WINDOW_S, RunState

__all__ = ["DETAILS", "RunBook"]

# What an owner says of its run in words.
DETAILS = ("name", "project", "task_id", "group", "job_type", "notes")


class RunBook:
    """All runs, newest first. Never forgets one that the store still has, unless it was deleted."""

    def __init__(self, clock: Clock, timeout_s: float = 30.0) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._entries: dict[str, RunEntry] = {}
        self._started_ms = self._now_ms
        self._told: dict[str, RunVerdict] = {}
        self._news: dict[str, RunInfo] = {}  # as clients were told of them the last time
        self._infos: dict[str, tuple[tuple[object, ...], RunInfo]] = {}  # with what they were made of
        self._host = socket.gethostname()
        self.deleted: set[str] = set()
        self.config_names: dict[str, None] = {}  # dotted, of all runs that were ever here
        self.task_of: Callable[[str], tuple[str, str] | None] = _no_task
        self.origin_of: Callable[[str], tuple[str, int] | None] = lambda _: None  # the task and step of a task's fork
        self.attempts_of: Callable[[str], list[AttemptBegan]] = lambda _: []
        self.wide_of: Callable[[str], dict[str, int]] = lambda _: {}

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def seen(self, run_id: str, first_ms: int, last_ms: int, top_step: int | None, points: int) -> None:
        """Live points came in; arrival counts as a sign of life even when the sender's clock is off. `top_step` is None
        when all of them are samples of the host: their steps are no steps of the training."""
        if run_id in self.deleted:
            return
        entry = self._entries.setdefault(run_id, RunEntry())
        entry.first_ms = first_ms if entry.first_ms is None else min(entry.first_ms, first_ms)
        entry.last_ms = last_ms if entry.last_ms is None else max(entry.last_ms, last_ms)
        entry.top_step = _higher(entry.top_step, top_step)
        entry.points += points
        entry.heard_ms = self._now_ms

    def set_series(self, run_id: str, count: int) -> None:
        if run_id not in self.deleted:
            self._entries.setdefault(run_id, RunEntry()).series = count

    def from_store(self, rows: Iterable[dict[str, Any]]) -> None:
        """The rollup's figures: they include other writers, but may lag behind what is still in the spool."""
        for row in rows:
            if row["run_id"] in self.deleted:
                continue
            entry = self._entries.setdefault(row["run_id"], RunEntry())
            entry.first_ms = min(row["first_ms"], entry.first_ms or row["first_ms"])
            entry.last_ms = max(row["last_ms"], entry.last_ms or 0)
            if entry.hidden is None:  # else the rollup also counts what was superseded
                entry.top_step = _higher(entry.top_step, row["top_step"])
            entry.points = max(entry.points, row["points"] - (entry.hidden or 0))
            entry.series = max(entry.series, row["series"])

    def recount(self, run_id: str, points: int, top_step: int | None, hidden: int) -> None:
        """Steps of it were done again: its figures are those of what is left."""
        entry = self._entries.get(run_id)
        if entry is not None:
            entry.points, entry.top_step, entry.hidden = points, top_step, hidden

    def take(self, run: RunMessage) -> None:
        """What its owner says now."""
        details = {name: getattr(run, name) for name in DETAILS}
        self.describe(run.run_id, details, run.config_json, list(run.tags), run.started_at_ms)
        self.state(run.run_id, run.status, run.reason, run.updated_at_ms)
        entry = self._entries.get(run.run_id)
        if entry is not None and run.pid:  # else it is our own note of its end
            entry.heard_ms = self._now_ms
            if run.status == RunState.RUNNING:
                entry.process, entry.is_gone = (run.host, run.pid, run.process_started_ms), None

    def alive(self, run_id: str) -> None:
        """Its process lives, and has nothing else to say."""
        if run_id in self._entries:
            self._entries[run_id].heard_ms = self._now_ms

    def describe(
        self, run_id: str, details: dict[str, str], config_json: str, tags: Sequence[str] = (), started_ms: int = 0
    ) -> None:
        """What its owner says of it: name, project, labels, configuration. Empty fields change nothing."""
        if run_id in self.deleted:
            return
        entry = self._entries.setdefault(run_id, RunEntry())
        entry.describe(details, config_json, tags, started_ms)
        self.config_names.update(dict.fromkeys(entry.flat))

    def state(self, run_id: str, status: str, reason: str, said_ms: int) -> None:
        """How its owner says that it stands. The newest word counts: what the store has may be older than what came
        in since."""
        entry = self._entries.get(run_id)
        if entry is not None and status and said_ms >= entry.said_ms:
            entry.said_ms = said_ms
            entry.say({"status": status, "reason": reason})

    def look(self) -> list[str]:
        """The runs whose state has changed since the last look. Also asks the system for processes of this host that
        have fallen silent."""
        changed = []
        for run_id, entry in self._entries.items():
            open_end = entry.details.get("status") in (RunState.RUNNING, RunState.LOST)
            if open_end and entry.process is not None and self._now_ms - entry.heard_ms >= LOOK_S * 1000:
                entry.is_gone = _is_gone(entry.process, self._host)
            verdict = self._verdict(run_id, entry)
            if self._told.get(run_id) != verdict:
                self._told[run_id] = verdict
                changed.append(run_id)
        return changed

    def edit(self, run_id: str, changes: Mapping[str, str]) -> None:
        """What somebody wrote about it; an empty name gives its own back."""
        if run_id in self._entries:
            self._entries[run_id].edit(changes)

    def delete(self, run_id: str) -> None:
        self._entries.pop(run_id, None)
        self._told.pop(run_id, None)
        self._infos.pop(run_id, None)
        self.deleted.add(run_id)

    def info(self, run_id: str) -> RunInfo | None:
        entry = self._entries.get(run_id)
        return None if entry is None else self._info(run_id, entry)

    def all(self) -> list[RunInfo]:
        infos = [self._info(run_id, entry) for run_id, entry in self._entries.items()]
        return sorted(infos, key=lambda info: info.last_event_time_ms or 0, reverse=True)

    def told(self) -> list[RunInfo]:
        """All, for a client that is told of them now: what it hears beside the last news is news once more."""
        infos = self.all()
        for info in infos:
            if self._news.get(info.run_id) is not info:
                self._news.pop(info.run_id, None)
        return infos

    def news(self) -> tuple[list[RunInfo], list[RunInfo]]:
        """All, and those of them that changed since the last time."""
        infos = self.all()
        changed = [info for info in infos if self._news.get(info.run_id) is not info]
        self._news = {info.run_id: info for info in infos}
        return infos, changed

    def entries(self) -> Mapping[str, RunEntry]:
        """What is known of each, to be read only: cheaper than all() where few fields of many runs are wanted."""
        return self._entries

    def state_of(self, run_id: str) -> RunVerdict:
        return self._verdict(run_id, self._entries[run_id])

    def owner_of(self, run_id: str) -> str | None:
        """The task of a run that is known, empty when it has none; None when nobody spoke of it."""
        entry = self._entries.get(run_id)
        return None if entry is None else entry.details.get("task_id", "")

    def of_task(self, task_id: str) -> list[str]:
        """The runs that its ranks log to; the one with the task's id when none said so."""
        mine = [run_id for run_id, entry in self._entries.items() if entry.details.get("task_id") == task_id]
        return mine or [task_id]

    def is_active(self, run_id: str) -> bool:
        entry = self._entries.get(run_id)
        return entry is not None and self._verdict(run_id, entry).state is RunState.RUNNING

    def active(self) -> set[str]:
        return {run_id for run_id in self._entries if self.is_active(run_id)}

    def _info(self, run_id: str, entry: RunEntry) -> RunInfo:
        """The same record for as long as it is true: of ten thousand runs few change from one look to the next."""
        verdict, attempts, wide = self._verdict(run_id, entry), self.attempts_of(run_id), dict(self.wide_of(run_id))
        origin = self._origin(entry.details.get("task_id") or run_id)
        figures = (entry.first_ms, entry.last_ms, entry.top_step, entry.points, entry.hidden, entry.series)
        made_of = (entry.revision, verdict, *figures, attempts, wide, origin)
        known = self._infos.get(run_id)
        if known is not None and known[0] == made_of:
            return known[1]
        info = RunInfo(
            run_id=run_id,
            start_time=_seconds(entry.start_ms),
            start_time_ms=entry.start_ms,
            last_event_time=_seconds(entry.last_ms),
            last_event_time_ms=entry.last_ms,
            latest_step=entry.top_step,
            is_active=verdict.state is RunState.RUNNING,
            state=verdict.state,
            reason=verdict.reason or None,
            num_series=entry.series,
            num_points=entry.points,
            superseded_points=entry.hidden or 0,
            attempts=attempts,
            wide_metrics=wide,
            task_id=entry.details.get("task_id"),
            name=entry.label("name"),
            project=entry.label("project"),
            status=entry.details.get("status"),
            notes=entry.label("notes"),
            tags=entry.shown_tags,
            group=entry.label("group"),
            job_type=entry.label("job_type"),
            archived=entry.is_archived,
            config=entry.config,
            forked_from=origin,
        )
        self._infos[run_id] = (made_of, info)
        return info

    def _origin(self, task_id: str) -> RunOrigin | None:
        origin = self.origin_of(task_id)
        if origin is None:
            return None
        parent, step = origin
        return RunOrigin(run_id=parent if parent in self._entries else self.of_task(parent)[0], step=step)

    def _verdict(self, run_id: str, entry: RunEntry) -> RunVerdict:
        said, task = entry.details.get("status"), self.task_of(entry.details.get("task_id") or run_id)
        if task is None and (end := said_end(said, entry.details.get("reason", ""))) is not None:
            return end  # whatever was heard since
        heard, last = entry.heard_ms, entry.last_ms or 0
        if said is None:  # rows that others wrote: their own times count, they may be older than our reading
            if last <= self._now_ms + ACTIVE_WINDOW_S * 1000:  # one from far ahead would keep it running until then
                heard = max(heard, last)
        elif said != RunState.LOST:  # while we were not running we heard nobody: silence begins with our start
            heard = max(heard, self._started_ms)
        facts = RunFacts(
            said=said,
            reason=entry.details.get("reason", ""),
            task=task,
            silent_s=(self._now_ms - heard) / 1000,
            is_gone=entry.is_gone,
        )
        return plan_state(facts, self._timeout_s)

    @property
    def _now_ms(self) -> int:
        return round(self._clock.wall() * 1000)


def _seconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds // 1000


def _no_task(_: str) -> tuple[str, str] | None:
    return None


def _is_gone(process: tuple[str, int, int], here: str) -> bool | None:
    host, pid, started_ms = process
    if host != here:
        return None
    try:
        return abs(psutil.Process(pid).create_time() * 1000 - started_ms) > 2_000
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return None


def _higher(known: int | None, other: int | None) -> int | None:
    return max((step for step in (known, other) if step is not None), default=None)
