"""What people do to runs: give them a name, tags, a group and notes, archive or delete them. Kept in the
store, so that a restart and every other observatory on the same store know it; a run that is still written is never
deleted.
"""

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Set
from functools import partial
from typing import Any

from strata.clock import Clock
from strata.errors import Conflict, InvalidArgument, NotFound, Refused, StoreUnavailable, StrataError
from strata.observatory.answers.runs import RunInfo
from strata.observatory.live.view import LiveView
from strata.observatory.store.base import Store, own_rows
from strata.observatory.store.sql import RUN_EDITS
from strata.observatory.store.table import TIME, Column, Table
from strata.observatory.store.writer import StoreWriter
from strata.types.labels import check_label, check_notes, check_tags

__all__ = ["RunEditor", "why_not_deletable"]

_log = logging.getLogger(__name__)
_SETTLE_S = 3.0
_TABLES = ("metric_points", "series_rollup", "runs", "attempts", "summaries", "texts")
# What people may set, and the text by which it is kept.
_CHECKS: Mapping[str, Callable[[Any], str]] = {
    "name": partial(check_label, "name"),
    "group": partial(check_label, "group"),
    "notes": check_notes,
    "tags": lambda tags: json.dumps(check_tags(tags), ensure_ascii=False),
    "archived": lambda archived: "1" if archived else "",
}
DropFiles = Callable[[str], Awaitable[None]]
_LIVE_TASKS = frozenset({"queued", "running", "recovering", "stopping"})


class RunEditor:
    """Every change is durable before it is shown. A deleted run's id is not free again: points that its writer still
    sends are dropped and counted, or they would bring back half of it."""

    def __init__(self, store: Store, writer: StoreWriter, live: LiveView, clock: Clock, drop_files: DropFiles) -> None:
        self._store = store
        self._drop_files = drop_files
        self._writer = writer
        self._live = live
        self._clock = clock
        self._edits: dict[str, dict[str, str]] = {}
        self._last_ms = 0

    def known(self, run_id: str) -> RunInfo:
        """Raises NotFound for a run that there is none of. Who has just sent points finds theirs."""
        if self._live.runs.info(run_id) is None:
            self._live.tick()
        info = self._live.runs.info(run_id)
        if info is None:
            raise NotFound(f"there is no run {run_id[:80]!r}", hint="GET /runs lists them.")
        return info

    def check_open(self, run_id: str) -> None:
        """Raises for a run that was deleted."""
        if run_id in self._live.runs.deleted:
            raise Conflict(
                f"run {run_id[:80]!r} was deleted and takes no points any more", hint="Log under another run id."
            )

    async def change(self, run_id: str, changes: Mapping[str, Any]) -> RunInfo:
        """Sets name, group, notes (an empty one gives back what the run says of itself), tags or archived."""
        await self.change_many({run_id: changes})
        return self.known(run_id)

    async def change_many(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """The changes of each run, all or none."""
        checked = {}
        for run_id, fields in changes.items():
            self.known(run_id)
            if not fields:
                raise InvalidArgument("there is nothing to change", hint=f"Send any of {', '.join(_CHECKS)}.")
            checked[run_id] = {field: _CHECKS[field](value) for field, value in fields.items()}
        await self._record(checked)
        for run_id, texts in checked.items():
            self._edits.setdefault(run_id, {}).update(texts)
            self._live.runs.edit(run_id, texts)
        self._live.publish_runs()

    async def delete(self, run_id: str, task_status: str | None) -> bool:
        """Returns whether its rows are gone already; if the store is slow or away they follow by themselves."""
        why_not = why_not_deletable(self.known(run_id), task_status)
        if why_not is not None:
            raise Conflict(why_not, hint="Stop its task, or whoever writes it, and try again.")
        await self._record({run_id: {"deleted": "1"}})
        self._live.drop([run_id])
        _log.info("run %s was deleted", run_id)
        with contextlib.suppress(TimeoutError):  # what is still in the spool is swept up later
            async with asyncio.timeout(_SETTLE_S):
                await self._writer.flushed()
        return await self._purge(run_id)

    async def load(self) -> None:
        """What was changed before this start, or by another observatory."""
        for row in await own_rows(self._store, RUN_EDITS):
            self._edits.setdefault(row["run_id"], {})[row["field"]] = row["value"]
        gone = [run_id for run_id, fields in self._edits.items() if "deleted" in fields]
        news = [run_id for run_id in gone if run_id not in self._live.runs.deleted]
        if news:
            self._live.drop(news)

    def apply(self) -> None:
        """Puts the edits over what the runs say of themselves."""
        for run_id, changes in self._edits.items():
            self._live.runs.edit(run_id, changes)

    async def sweep(self, stored: Set[str]) -> None:
        """Removes rows of deleted runs that are in the store: of a crash between the two, or written there since."""
        for run_id in stored & self._live.runs.deleted:
            await self._purge(run_id)

    async def _purge(self, run_id: str) -> bool:
        try:
            async with self._writer.quiet():
                if self._writer.interrupted:
                    return False  # after a crash the writer looks for rows of its last group: they must not vanish now
                for table in _TABLES:
                    await self._store.command(
                        f"DELETE FROM {{db}}.{table} WHERE run_id = {{run:String}}",  # noqa: S608 - a name of ours
                        {"run": run_id},
                    )
                self._live.series.forget_stored(run_id)
            await self._drop_files(run_id)
        except StrataError as error:
            _log.warning("rows or files of the deleted run %s are still there: %s", run_id, error.message)
            return False
        return True

    async def _record(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        self._last_ms = max(self._last_ms + 1, round(self._clock.wall() * 1000))  # the later change wins, always
        made = [(run_id, field, value) for run_id, fields in changes.items() for field, value in fields.items()]
        texts = dict(zip(("run_id", "field", "value"), map(list, zip(*made, strict=True)), strict=True))
        rows = Table.of({**texts, "event_time": Column(TIME, [self._last_ms] * len(made))})
        try:
            await self._store.insert("run_edits", rows, token=uuid.uuid4().hex)
        except StoreUnavailable:
            raise
        except StrataError as error:
            raise Refused(f"the metric store does not keep changes of runs: {error.message}") from None


def why_not_deletable(info: RunInfo, task_status: str | None) -> str | None:
    """A sentence while somebody writes the run, None when it is over."""
    if task_status in _LIVE_TASKS:
        return f"run {info.run_id!r} belongs to a task that is {task_status}"
    return f"run {info.run_id!r} is running" if info.is_active else None
