"""Checked batches as Arrow tables, one per ClickHouse table. Deterministic: the same batches give the same bytes, which
is what makes a repeated insert recognisable.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strata.observatory.batch.columns import Columns, SeriesHead, log_entry

__all__ = ["PointRows", "tables_of"]

_TIME = pa.timestamp("ms", tz="UTC")


class PointRows:
    """The points of a group of batches with their distinct series; `series` indexes `heads`. They come in the
    order of the table's key: to sort them here costs a fraction of what it costs the engine."""

    def __init__(self, batches: Sequence[Columns]) -> None:
        known: dict[SeriesHead, int] = {}
        codes: dict[int, npt.NDArray[np.int64]] = {}  # by identity: batches of one sender share their heads
        parts = []
        for batch in batches:
            mine = codes.get(id(batch.heads))
            if mine is None:
                mine = np.array([known.setdefault(head, len(known)) for head in batch.heads], np.int64)
                codes[id(batch.heads)] = mine
            parts.append(mine[batch.series])
        self.heads = tuple(sorted(known, key=lambda head: head.key))
        ranks = np.zeros(len(known), np.int64)
        ranks[[known[head] for head in self.heads]] = np.arange(len(known))
        series: npt.NDArray[np.int64] = ranks[_joined(parts, np.int64)]
        steps = _joined([batch.steps for batch in batches], np.int64)
        times = _joined([batch.times for batch in batches], np.int64)
        order = np.lexsort((times, steps, series.astype(np.uint16) if len(known) < 1 << 16 else series))
        self.series, self.steps, self.times = series[order], steps[order], times[order]
        self.values = _joined([batch.values for batch in batches], np.float64)[order]

    def __len__(self) -> int:
        return len(self.values)

    def table(self, chosen: npt.NDArray[np.bool_] | None = None) -> pa.Table:
        rows = slice(None) if chosen is None else chosen
        series = self.series[rows]
        keys = [head.key for head in self.heads]
        return pa.table(
            {
                "event_time": pa.array(self.times[rows]).cast(_TIME),
                "run_id": _words([key.run_id for key in keys], series),
                "host": _words([key.host for key in keys], series),
                "rank": pa.array(np.array([key.rank for key in keys], np.uint32)[series]),
                "device": pa.array(np.array([key.device for key in keys], np.uint16)[series]),
                "step": pa.array(self.steps[rows].astype(np.uint64)),
                "metric": _words([key.metric for key in keys], series),
                "value": pa.array(self.values[rows]),
                "unit": _words([head.unit for head in self.heads], series),
                "tags_json": _words([head.tags_json for head in self.heads], series),
            }
        )


def tables_of(batches: Sequence[Columns], points: PointRows) -> dict[str, pa.Table]:
    """What to insert, by table; tables without rows are left out."""
    made = {
        "attempts": _messages(batches, "attempts", _ATTEMPT, nullable={"step": pa.uint64()}),  # before their points
        "metric_points": points.table() if len(points) else None,
        "logs": _logs(batches),
        "runs": _messages(batches, "runs", _RUN, nullable={}),
        "events": _messages(batches, "events", _EVENT, nullable={"rank": pa.uint32(), "step": pa.uint64()}),
        "checkpoints": _messages(batches, "checkpoints", _CHECKPOINT, nullable={"duration_s": pa.float64()}),
        "summaries": _messages(batches, "summaries", _SUMMARY, nullable={}),
        "texts": _messages(batches, "texts", _TEXT_POINT, nullable={}),
    }
    return {name: table for name, table in made.items() if table is not None}


_TEXT = pa.string()
_RUN = dict.fromkeys(("run_id", "project", "name", "task_id", "config_json", "status", "reason"), _TEXT)
_RUN |= {"tags": pa.list_(_TEXT), **dict.fromkeys(("group", "job_type", "notes"), _TEXT)}
_SUMMARY = dict.fromkeys(("run_id", "name", "value_json"), _TEXT)
_TEXT_POINT = dict.fromkeys(("run_id", "metric", "host", "kind", "text"), _TEXT)
_TEXT_POINT |= {"rank": pa.uint32(), "attempt": pa.uint32(), "step": pa.uint64()}
_EVENT = dict.fromkeys(("id", "kind", "severity", "message", "run_id", "task_id", "worker_id"), _TEXT)
_EVENT |= {"attempt": pa.uint32()}
_CHECKPOINT = dict.fromkeys(("id", "run_id", "worker_id", "path", "status", "reason"), _TEXT)
_CHECKPOINT |= {"attempt": pa.uint32(), "rank": pa.uint32(), "step": pa.uint64(), "epoch": pa.uint64()}
_CHECKPOINT |= {"size_bytes": pa.uint64()}
_ATTEMPT = {"run_id": _TEXT, "metric": _TEXT, "rank": pa.uint32(), "device": pa.uint16(), "attempt": pa.uint32()}
_ATTEMPT |= {"world": pa.uint32()}
# Where a message calls a time by another name than its table.
_TIMES = {"runs": {"event_time": "updated_at_ms", "started_at": "started_at_ms"}}


def _messages(
    batches: Sequence[Columns], table: str, fields: dict[str, pa.DataType], nullable: dict[str, pa.DataType]
) -> pa.Table | None:
    rows = [row for batch in batches for row in getattr(batch, table)]
    if not rows:
        return None
    columns = {}
    for name, source in _TIMES.get(table, {"event_time": "event_time_ms"}).items():
        columns[name] = pa.array([getattr(row, source) for row in rows], pa.int64()).cast(_TIME)
    for name, kind in fields.items():
        columns[name] = pa.array([getattr(row, name) for row in rows], kind)
    for name, kind in nullable.items():
        columns[name] = pa.array([getattr(row, name) if row.HasField(name) else None for row in rows], kind)
    return pa.table(columns)


def _logs(batches: Sequence[Columns]) -> pa.Table | None:
    lines = [
        (line, log_entry(line, batch.batch_id, position))
        for batch in batches
        for position, line in enumerate(batch.logs)
    ]
    if not lines:
        return None
    return pa.table(
        {
            "event_time": pa.array([entry.timestamp_ms for _, entry in lines], pa.int64()).cast(_TIME),
            "id": [entry.id for _, entry in lines],
            "sequence": pa.array([line.sequence for line, _ in lines], pa.uint64()),
            "level": [str(entry.level) for _, entry in lines],
            "message": [entry.message for _, entry in lines],
            "source": [entry.source for _, entry in lines],
            "run_id": [line.task_id for line, _ in lines],
            "task_id": [line.task_id for line, _ in lines],
            "worker_id": [line.worker_id for line, _ in lines],
            "host": [line.host for line, _ in lines],
            "rank": pa.array([line.rank for line, _ in lines], pa.uint32()),
            "attempt": pa.array([line.attempt for line, _ in lines], pa.uint32()),
            "stream": [line.stream for line, _ in lines],
        }
    )


def _words(texts: list[str], series: npt.NDArray[np.int64]) -> pa.Array:
    """One text per series as a dictionary column with distinct words: LowCardinality on the other side."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes[series]), pa.array(list(known), pa.string()))


def _joined(parts: list[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, kind)
