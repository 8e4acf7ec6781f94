"""The door for points and logs: checked, made safe on disk, then handed to the live view. An answer means safe.

Many senders share one disk sync. A batch id that was seen before is acknowledged again and not taken twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass, field

from strata.clock import Clock
from strata.errors import StrataError, Unavailable
from strata.observatory.background.part import Part
from strata.observatory.batch.columns import Columns, normalise, to_columns
from strata.observatory.batch.door import check_extras
from strata.observatory.batch.strip import strip_runs
from strata.observatory.ingest.fence import NOTHING, Fence, Refused
from strata.observatory.spool.spool import Spool
from strata.protocol.generated.telemetry_pb2 import Batch

__all__ = ["Accepted", "Intake", "IntakeCounts"]

_log = logging.getLogger(__name__)

Sink = Callable[[Columns, int], None]


@dataclass(slots=True)
class IntakeCounts:
    """Since the start, for Prometheus and the status page."""

    points: int = 0
    logs: int = 0
    batches: int = 0
    repeated: int = 0
    refused: int = 0
    unsafe: int = 0  # could not be written to disk and were not acknowledged
    dropped_points: int = 0
    dropped_logs: int = 0
    late_points: int = 0  # of runs that were deleted
    fenced_points: int = 0  # of attempts that a newer one had superseded when they were measured
    fenced_logs: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a sender is told."""

    points: int
    logs: int
    refused: Refused = NOTHING


@dataclass(slots=True)
class _Waiting:
    columns: Columns
    payload: bytes
    digest: bytes
    done: "asyncio.Future[None]" = field(repr=False)


class Intake(Part):
    """`sink(columns, end_offset)` gets every accepted batch, once, in the order of the spool. What it holds of runs in
    `deleted` is taken out first: a batch is of many runs, and the others' points must not wait for a refusal. So is
    what `fence` keeps out. `keep_files` makes files safe and takes them out: the spool is for rows."""

    def __init__(
        self,
        spool: Spool,
        sink: Sink,
        clock: Clock,
        deleted: Set[str],
        fence: Fence,
        keep_files: Callable[[Batch], Awaitable[None]],
    ) -> None:
        self._spool = spool
        self._sink = sink
        self._clock = clock
        self._deleted = deleted
        self._fence = fence
        self._keep_files = keep_files
        self._waiting: list[_Waiting] = []
        self._in_flight: dict[bytes, asyncio.Future[None]] = {}
        self._wake = asyncio.Event()
        self.counts = IntakeCounts()
        self._is_failing = False

    async def stop(self) -> None:
        await super().stop()
        for item in self._waiting:
            _settle(item.done, Unavailable("the observatory is stopping"))

    async def accept(self, message: Batch, raw: bytes | None = None) -> Accepted:
        """Returns when the batch is safe on disk; raises without keeping any of it. `raw` is the message as it came:
        it need not be encoded again when nothing had to be filled in."""
        try:
            complete = normalise(message, round(self._clock.wall() * 1000))
            check_extras(message)
            columns = to_columns(message, raw)
            if self._deleted and columns.is_of(self._deleted):
                self.counts.late_points += strip_runs(message, self._deleted)
                columns, raw = to_columns(message), None
            self._spool.check_room()
        except StrataError:
            self.counts.refused += 1
            raise
        accepted = Accepted(columns.num_points, len(columns.logs))
        digest = self._spool.digest(columns.batch_id)
        if self._spool.has(digest):
            self.counts.repeated += 1
            return accepted
        under_way = self._in_flight.get(digest) if columns.batch_id else None
        if under_way is not None:
            self.counts.repeated += 1
            await asyncio.shield(under_way)
            return accepted
        refused = self._fence.sift(message, columns)
        if refused is not None:
            columns, raw = to_columns(message), None
            accepted = Accepted(columns.num_points, len(columns.logs), refused)
        if any(text.files for text in message.texts):
            await self._keep_files(message)
            raw = None
        payload = raw if raw is not None and complete else message.SerializeToString()
        await self._append(columns, payload, digest)
        self.counts.fenced_points += accepted.refused.points
        self.counts.fenced_logs += accepted.refused.logs
        return accepted

    async def _append(self, columns: Columns, payload: bytes, digest: bytes) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(columns, payload, digest, done))
        if columns.batch_id:
            self._in_flight[digest] = done
            done.add_done_callback(lambda _: self._in_flight.pop(digest, None))
        self._wake.set()
        await asyncio.shield(done)  # a caller that goes away does not take the batch with it

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            group, self._waiting = self._waiting, []
            if group:
                await self._write(group)

    async def _write(self, group: list[_Waiting]) -> None:
        try:
            ends = await asyncio.to_thread(self._spool.append, [(item.digest, item.payload) for item in group])
        except StrataError as error:
            if not self._is_failing:  # once, not for every batch of an hour
                _log.error("%s; senders keep their points and try again", error.message)
            self._is_failing = True
            self.counts.unsafe += len(group)
            for item in group:
                _settle(item.done, error)
            return
        except asyncio.CancelledError:
            for item in group:
                _settle(item.done, Unavailable("the observatory is stopping"))
            raise
        if self._is_failing:
            self._is_failing = False
            _log.info("batches can be kept again")
        for item, end in zip(group, ends, strict=True):
            self._tally(item.columns)
            self._sink(item.columns, end)
            _settle(item.done, None)

    def _tally(self, columns: Columns) -> None:
        counts = self.counts
        counts.batches += 1
        counts.points += columns.num_points
        counts.logs += len(columns.logs)
        counts.dropped_points += columns.dropped_points
        counts.dropped_logs += columns.dropped_logs


def _settle(done: "asyncio.Future[None]", error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
        done.exception()  # read here: nobody may be waiting any more
