"""A telemetry batch from the wire, checked and turned into columns. All or nothing: one bad name refuses the batch.

NaN and Inf are data and stay; absurd names, steps and times are mistakes and are refused with what is allowed.
"""

import zlib
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from strata.errors import InvalidArgument
from strata.observatory.answers.logs import LogEntry
from strata.observatory.batch.door import LATEST_MS
from strata.observatory.batch.heads import HeadMemory, SeriesHead
from strata.protocol.generated.telemetry_pb2 import (
    AttemptStart,
    Batch,
    CheckpointRow,
    EventRow,
    LogLine,
    Sample,
    SummaryValue,
    TextPoint,
)
from strata.protocol.generated.telemetry_pb2 import RunInfo as RunMessage
from strata.types.logs import LogLevel
from strata.types.metrics import MAX_STEP
from strata.types.names import check_name

__all__ = ["MAX_LOGS", "MAX_POINTS", "Columns", "SeriesHead", "decode", "log_entry", "normalise", "parse", "to_columns"]

MAX_POINTS = 200_000
MAX_LOGS = 20_000
_MAX_MESSAGE = 64 * 1024
_MAX_CONFIG = 256 * 1024
_MAX_SAMPLE = 1 << 20
_ROWS = ("logs", "runs", "samples", "events", "checkpoints", "attempts", "summaries", "texts")

_heads = HeadMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A checked batch: `series` indexes `heads`; the four arrays have equal length. `head_turns` is the turn of each
    head, None when none has one; `attempts` are those that began."""

    batch_id: str
    heads: tuple[SeriesHead, ...]
    head_turns: npt.NDArray[np.int64] | None
    series: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    logs: list[LogLine]
    runs: list[RunMessage]
    samples: list[Sample]
    events: list[EventRow]
    checkpoints: list[CheckpointRow]
    attempts: list[AttemptStart]
    summaries: list[SummaryValue]
    texts: list[TextPoint]
    dropped_points: int
    dropped_logs: int
    alive: tuple[str, ...] = ()

    @property
    def num_points(self) -> int:
        return len(self.values)

    def is_of(self, runs: Set[str]) -> bool:
        """Whether it holds points or a description of any of these runs."""
        rows: tuple[Any, ...] = (*self.runs, *self.summaries, *self.texts)
        return any(head.key.run_id in runs for head in self.heads) or any(row.run_id in runs for row in rows)

    def without(self, runs: Set[str]) -> "Columns":
        """Its points but those of these runs."""
        if not self.is_of(runs):
            return self
        kept = np.array([head.key.run_id not in runs for head in self.heads], bool)[self.series]
        columns: dict[str, Any] = {name: getattr(self, name)[kept] for name in ("series", "steps", "times", "values")}
        for name in ("runs", "summaries", "texts"):
            columns[name] = [row for row in getattr(self, name) if row.run_id not in runs]
        return replace(self, **columns)


def decode(raw: bytes) -> Columns:
    """Raises InvalidArgument for anything that must not be stored."""
    return to_columns(parse(raw), raw)


def parse(raw: bytes) -> Batch:
    try:
        return Batch.FromString(raw)
    except DecodeError:
        raise InvalidArgument("the batch is not a telemetry.Batch message") from None


def to_columns(message: Batch, raw: bytes | None = None) -> Columns:
    """The checks and the conversion; `decode` is this after parsing. `raw`, if its series are still the message's,
    saves reading those that came before."""
    points = message.points
    counts = {len(points.series), len(points.step), len(points.event_time_ms), len(points.value)}
    if len(counts) != 1:
        raise InvalidArgument("the columns of the batch's points differ in length")
    if counts.pop() > MAX_POINTS or len(message.logs) > MAX_LOGS:
        raise InvalidArgument(f"a batch holds at most {MAX_POINTS} points and {MAX_LOGS} log lines")
    if message.batch_id:
        check_name("batch_id", message.batch_id)
    table = _heads.table(message, raw)
    columns = Columns(
        batch_id=message.batch_id,
        heads=table.heads,
        head_turns=table.turns,
        series=table.positions(np.array(points.series, np.int64)),
        steps=_steps(np.array(points.step, np.uint64)),
        times=np.array(points.event_time_ms, np.int64),
        values=np.array(points.value, np.float64),
        **{name: list(getattr(message, name)) for name in _ROWS},
        dropped_points=max(0, message.dropped_points),
        dropped_logs=max(0, message.dropped_logs),
        alive=tuple(message.alive),
    )
    _check_times(columns)
    _check_rest(columns)
    return columns


def normalise(message: Batch, now_ms: int) -> bool:
    """Fills in the times that a sender left out, so that a replay from disk gives the same rows. True when it was
    complete as it came."""
    complete = True
    times = message.points.event_time_ms
    if not times and message.points.value:
        times.extend([now_ms] * len(message.points.value))
        complete = False
    for line in message.logs:
        if line.event_time_ms <= 0:
            line.event_time_ms = now_ms
            complete = False
    for run in message.runs:
        if run.updated_at_ms <= 0:
            run.updated_at_ms = now_ms
            complete = False
    return complete


def log_entry(line: LogLine, batch_id: str, position: int) -> LogEntry:
    """The id is time, batch and place: stable over replays, and it sorts as it happened."""
    batch = zlib.crc32(batch_id.encode())
    return LogEntry(
        id=f"log_{line.event_time_ms:011x}{line.sequence & 0xFFFFFFFF:08x}{batch:08x}{position:04x}",
        timestamp=line.event_time_ms // 1000,
        timestamp_ms=line.event_time_ms,
        level=LogLevel.parse(line.level),
        message=line.message[:_MAX_MESSAGE],
        source=line.source or "worker",
        task_id=line.task_id or None,
        worker_id=line.worker_id or None,
        rank=line.rank,
        host=line.host,
        stream=line.stream,
        attempt=line.attempt,
    )


def _steps(steps: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    if len(steps) and steps.max() > MAX_STEP:
        raise InvalidArgument(f"step {int(steps.max())} is beyond 2^53", hint="Steps count up from 0.")
    return steps.astype(np.int64)


def _check_times(columns: Columns) -> None:
    times = columns.times
    if len(times) and not (times.min() > 0 and times.max() < LATEST_MS):
        place = int(np.flatnonzero((times <= 0) | (times >= LATEST_MS))[0])
        key = columns.heads[int(columns.series[place])].key
        raise InvalidArgument(
            f"event time {int(times[place])} of metric {key.metric!r} of run {key.run_id!r} is not Unix milliseconds "
            "between 1970 and 2200",
            hint="Leave the time out, and the time of arrival is taken.",
        )


def _check_rest(columns: Columns) -> None:
    for line in columns.logs:
        LogLevel.parse(line.level)
        if not 0 < line.event_time_ms < LATEST_MS:
            raise InvalidArgument(
                f"event time {line.event_time_ms} of a log line is not Unix milliseconds between 1970 and 2200"
            )
    for run in columns.runs:
        check_name("run_id", run.run_id)
        if len(run.config_json) > _MAX_CONFIG or len(run.name) > 255 or len(run.project) > 255:
            raise InvalidArgument(f"name or config of run {run.run_id!r} is too long")
    for sample in columns.samples:
        if len(sample.rows_json) > _MAX_SAMPLE:
            raise InvalidArgument(f"a sample of dataset {sample.dataset_id!r} is larger than {_MAX_SAMPLE} bytes")
