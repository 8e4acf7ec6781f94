"""What people do to runs: give them a name and notes, or delete them. Kept in the store, so that a restart and every
other observatory on the same store know it; it never touches a run that is still being written.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Mapping, Set
from datetime import UTC, datetime

import pyarrow as pa

from strata.clock import Clock
from strata.errors import Conflict, InvalidArgument, NotFound, Refused, StoreUnavailable, StrataError
from strata.observatory.answers.runs import RunInfo
from strata.observatory.live.view import LiveView
from strata.observatory.store.base import Store, own_rows
from strata.observatory.store.sql import RUN_EDITS
from strata.observatory.store.writer import StoreWriter

__all__ = ["RunEditor", "why_not_deletable"]

_log = logging.getLogger(__name__)
_MAX_NAME = 255
_MAX_NOTES = 20_000
_SETTLE_S = 3.0
_TABLES = ("metric_points", "series_rollup", "runs", "attempts")
_LIVE_TASKS = frozenset({"queued", "running", "recovering", "stopping"})


class RunEditor:
    """Every change is durable before it is shown. A deleted run's id is not free again: points that its writer still
    sends are dropped and counted, or they would bring back half of it."""

    def __init__(self, store: Store, writer: StoreWriter, live: LiveView, clock: Clock) -> None:
        self._store = store
        self._writer = writer
        self._live = live
        self._clock = clock
        self._edits: dict[str, dict[str, str]] = {}
        self._last_ms = 0

    def check_open(self, run_id: str) -> None:
        """Raises for a run that was deleted."""
        if run_id in self._live.runs.deleted:
            raise Conflict(
                f"run {run_id[:80]!r} was deleted and takes no points any more", hint="Log under another run id."
            )

    async def change(self, run_id: str, changes: Mapping[str, str]) -> RunInfo:
        """Sets name, notes or both; an empty one gives back what the run says of itself."""
        self._known(run_id)
        checked = {field: _checked(field, value) for field, value in changes.items()}
        if not checked:
            raise InvalidArgument("there is nothing to change", hint="Send name, notes or both.")
        await self._record(run_id, checked)
        self._edits.setdefault(run_id, {}).update(checked)
        self._live.runs.edit(run_id, checked)
        self._live.publish_runs()
        return self._known(run_id)

    async def delete(self, run_id: str, task_status: str | None) -> bool:
        """Returns whether its rows are gone already; if the store is slow or away they follow by themselves."""
        why_not = why_not_deletable(self._known(run_id), task_status)
        if why_not is not None:
            raise Conflict(why_not, hint="Stop its task, or whoever writes it, and try again.")
        await self._record(run_id, {"deleted": "1"})
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
        except StrataError as error:
            _log.warning("rows of the deleted run %s are still in the store: %s", run_id, error.message)
            return False
        return True

    async def _record(self, run_id: str, fields: Mapping[str, str]) -> None:
        self._last_ms = max(self._last_ms + 1, round(self._clock.wall() * 1000))  # the later change wins, always
        at = datetime.fromtimestamp(self._last_ms / 1000, UTC)
        rows = pa.table(
            {
                "run_id": [run_id] * len(fields),
                "field": list(fields),
                "value": list(fields.values()),
                "event_time": pa.array([at] * len(fields), pa.timestamp("ms", tz="UTC")),
            }
        )
        try:
            await self._store.insert("run_edits", rows, token=uuid.uuid4().hex)
        except StoreUnavailable:
            raise
        except StrataError as error:
            raise Refused(f"the metric store does not keep changes of runs: {error.message}") from None

    def _known(self, run_id: str) -> RunInfo:
        info = self._live.runs.info(run_id)
        if info is None:
            raise NotFound(f"there is no run {run_id[:80]!r}", hint="GET /runs lists them.")
        return info


def why_not_deletable(info: RunInfo, task_status: str | None) -> str | None:
    """A sentence while somebody writes the run, None when it is over."""
    if task_status in _LIVE_TASKS:
        return f"run {info.run_id!r} belongs to a task that is {task_status}"
    return f"run {info.run_id!r} is running" if info.is_active else None


def _checked(field: str, value: str) -> str:
    text = value.strip() if field == "name" else value
    limit = _MAX_NAME if field == "name" else _MAX_NOTES
    if len(text) > limit:
        raise InvalidArgument(f"{field} has {len(text)} characters, at most {limit} are kept")
    spaces = "" if field == "name" else "\n\t"
    bad = next((char for char in text if not char.isprintable() and char not in spaces), None)
    if bad is not None:
        raise InvalidArgument(f"{field} holds the unprintable character {bad!r}")
    return text
