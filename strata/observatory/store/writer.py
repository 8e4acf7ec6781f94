"""From the spool into the store, in order, in groups, exactly once.

A group's bounds are on disk before it is sent, so a crash repeats exactly that group, and what the store holds of it
is not sent again.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import numpy as np

from strata.errors import StoreUnavailable, StrataError
from strata.observatory.background.part import Part
from strata.observatory.background.setaside import SetAside
from strata.observatory.batch.columns import Columns, decode
from strata.observatory.live.series import SeriesTable
from strata.observatory.spool.spool import Progress, Spool
from strata.observatory.store.base import Store
from strata.observatory.store.inserts import Inserts, Sent
from strata.observatory.store.rows import PointRows, tables_of
from strata.observatory.store.table import Table

__all__ = ["StoreWriter"]

_log = logging.getLogger(__name__)
_INTERVAL_S = 0.5
_GROUP_BYTES = 6 << 20
_RETRY_S = 1.0
_PATIENCE = 5  # refusals of one group before each of its rows is tried
_STOP_S = 3.0
_MAX_OFFERED_BYTES = 32 << 20  # a million points, or five hundred log lines of the largest size


@dataclass(frozen=True, slots=True)
class _Offered:
    start: int
    end: int
    columns: Columns

    @property
    def num_bytes(self) -> int:
        """Of memory, nearly: arrays have 32 bytes per point, the rest is as long as it was on the wire."""
        return max(self.end - self.start, 32 * self.columns.num_points)


@dataclass(frozen=True, slots=True)
class _Group:
    end: int
    token: str
    points: PointRows
    tables: dict[str, Table]


class StoreWriter(Part):
    """One task that moves records. `quiet` holds it between groups, so that a reader can count rows exactly."""

    def __init__(self, spool: Spool, store: Store, series: SeriesTable, aside: SetAside) -> None:
        self._spool = spool
        self._store = store
        self._aside = aside
        self._inserts = Inserts(store, aside, spool.folder / "refused.jsonl")
        self._series = series
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._moved = asyncio.Condition()
        self._offered: deque[_Offered] = deque()
        self._offered_bytes = 0
        self._offered_end: int | None = None
        self.boot_end = 0
        self.inserted_points = 0
        self.problem: str | None = None

    async def start(self) -> None:
        self.boot_end = self._spool.end  # what an earlier process accepted and this one never showed
        await super().start()

    async def stop(self) -> None:
        """Stops between two groups; the rest stays in the spool for the next start."""
        with contextlib.suppress(TimeoutError):  # a store that hangs must not keep us; the group is repeated then
            async with asyncio.timeout(_STOP_S):
                await self._lock.acquire()
        await super().stop()

    def offer(self, columns: Columns, end: int) -> None:
        """A batch that was just appended, decoded already: saves reading it back, as long as the store keeps up.
        Batches come in the order of the spool, without gaps."""
        start = self._offered_end if self._offered_end is not None else self.boot_end
        self._offered_end = end
        self._offered.append(_Offered(start, end, columns))
        self._offered_bytes += self._offered[-1].num_bytes
        while self._offered_bytes > _MAX_OFFERED_BYTES:
            self._drop_offered()
        self._wake.set()

    async def flushed(self, offset: int | None = None) -> None:
        """Returns when the store holds every record before `offset`; all that there is now, when it is not given."""
        offset = self._spool.end if offset is None else offset
        self._wake.set()
        self._hurry.set()
        async with self._moved:
            await self._moved.wait_for(lambda: self._spool.progress.consumed >= offset)

    @contextlib.asynccontextmanager
    async def quiet(self) -> AsyncGenerator[int]:
        """No insert is under way inside; yields the offset up to which the store holds everything, and nothing else.
        Raises StoreUnavailable while nobody knows whether an interrupted group is in: its rows would be counted as
        stored and as still to come."""
        async with self._lock:
            if self.interrupted:
                raise StoreUnavailable("an interrupted insert must be repeated first")
            yield self._spool.progress.consumed

    @property
    def interrupted(self) -> bool:
        """Whether a group was begun that is not known to be in the store: its rows must not be touched meanwhile."""
        return self._spool.progress.pending > self._spool.progress.consumed

    async def _run(self) -> None:
        await self._store.wait_ready()
        refusals = 0
        while True:
            while self._spool.progress.consumed >= self._spool.end:
                self._wake.clear()
                await self._wake.wait()
            try:
                async with self._lock:
                    await self._move_group(stubborn=refusals >= _PATIENCE)
                refusals, self.problem = 0, None
            except StoreUnavailable as error:
                self.problem = error.message
                await asyncio.sleep(0.05)
                await self._store.wait_ready()
                continue
            except (StrataError, OSError) as error:  # also a disk that is full, or cannot be read: it may pass
                refusals += 1
                if self.problem != str(error):  # once, not every second
                    _log.error("points cannot be moved to the metric store, trying again: %s", error)
                self.problem = str(error)
                await asyncio.sleep(_RETRY_S)
                continue
            async with self._moved:
                self._moved.notify_all()
            if self._spool.backlog_bytes < _GROUP_BYTES:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_INTERVAL_S):
                        await self._hurry.wait()
                self._hurry.clear()

    async def _move_group(self, *, stubborn: bool) -> None:
        repeated = self.interrupted
        group = await self._next_group()
        sent: list[Sent] = []
        for table, rows in group.tables.items():
            token = f"{group.token}:{table}"
            sent += await self._inserts.send(table, rows, token, stubborn=stubborn, repeated=repeated)
        if repeated:
            for one in sent:
                await self._inserts.verify(one)
        await asyncio.to_thread(self._finish, group.end)
        self._count(group.points, sum(one.rows.num_rows for one in sent if one.table == "metric_points"))

    def _finish(self, end: int) -> None:
        self._spool.save(Progress(consumed=end, pending=end))
        self._spool.trim()

    async def _next_group(self) -> _Group:
        """The group that was begun before a crash, else a new one whose bounds are saved first."""
        progress = self._spool.progress
        begun = progress.pending > progress.consumed
        limit = progress.pending if begun else self._spool.end
        size = 1 << 62 if begun else _GROUP_BYTES
        end, batches = self._from_memory(progress.consumed, limit, size)
        if not batches or (begun and end != limit):  # a group that was begun is repeated as it was
            end, batches = self._from_disk(progress.consumed, limit, size)
        if not begun:
            await asyncio.to_thread(self._spool.save, Progress(consumed=progress.consumed, pending=end))
        points = PointRows(batches)
        token = f"{self._spool.spool_id}:{progress.consumed}-{end}"
        return _Group(end, token, points, tables_of(batches, points))

    def _from_memory(self, start: int, limit: int, max_bytes: int) -> tuple[int, list[Columns]]:
        """The batches that follow `start`, if they were offered and are still held; a repeat finds them again."""
        while self._offered and self._offered[0].end <= start:
            self._drop_offered()
        end, batches = start, []
        for one in self._offered:
            if one.start != end or one.end > limit or end - start >= max_bytes:
                break
            end = one.end
            batches.append(one.columns)
        return end, batches

    def _from_disk(self, start: int, limit: int, max_bytes: int) -> tuple[int, list[Columns]]:
        piece = self._spool.read(start, limit=limit, max_bytes=max_bytes)
        batches = []
        for record in piece.records:
            with self._aside.guard("spool", f"the batch before byte {record.end}"):
                batches.append(decode(record.payload))
        return piece.end, batches

    def _drop_offered(self) -> None:
        self._offered_bytes -= self._offered.popleft().num_bytes

    def _count(self, points: PointRows, inserted: int) -> None:
        self.inserted_points += inserted
        if inserted == len(points) > 0:  # else the poller finds out how many of which series there are
            numbers = self._series.intern_all(points.heads)
            counts = np.bincount(points.series, minlength=len(numbers)).astype(np.int64)
            self._series.add_stored(numbers, counts)
