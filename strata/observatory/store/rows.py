"""Checked batches as rows, one table per ClickHouse table. Deterministic: the same batches give the same bytes, which
is what makes a repeated insert recognisable.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from strata.observatory.batch.columns import Columns, SeriesHead, log_entry
from strata.observatory.store.table import TIME, Column, Table, words_of

__all__ = ["PointRows", "tables_of"]


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

    def table(self) -> Table:
        keys = [head.key for head in self.heads]
        return Table(
            {
                "event_time": Column(TIME, self.times),
                "run_id": words_of([key.run_id for key in keys], self.series),
                "host": words_of([key.host for key in keys], self.series),
                "rank": Column("UInt32", np.array([key.rank for key in keys], np.uint32)[self.series]),
                "device": Column("UInt16", np.array([key.device for key in keys], np.uint16)[self.series]),
                "step": Column("UInt64", self.steps.astype(np.uint64)),
                "metric": words_of([key.metric for key in keys], self.series),
                "value": Column("Float64", self.values),
                "unit": words_of([head.unit for head in self.heads], self.series),
                "tags_json": words_of([head.tags_json for head in self.heads], self.series),
            }
        )


def tables_of(batches: Sequence[Columns], points: PointRows) -> dict[str, Table]:
    """What to insert, by table; tables without rows are left out."""
    made = {
        "attempts": _messages(batches, "attempts", _ATTEMPT, nullable={"step": "UInt64"}),  # before their points
        "metric_points": points.table() if len(points) else None,
        "logs": _logs(batches),
        "runs": _messages(batches, "runs", _RUN, nullable={}),
        "events": _messages(batches, "events", _EVENT, nullable={"rank": "UInt32", "step": "UInt64"}),
        "checkpoints": _messages(batches, "checkpoints", _CHECKPOINT, nullable={"duration_s": "Float64"}),
        "summaries": _messages(batches, "summaries", _SUMMARY, nullable={}),
        "texts": _messages(batches, "texts", _TEXT_POINT, nullable={}),
    }
    return {name: table for name, table in made.items() if table is not None}


_TEXT, _TEXTS = "String", "Array(String)"
_RUN = dict.fromkeys(("run_id", "project", "name", "task_id", "config_json", "status", "reason"), _TEXT)
_RUN |= {"tags": _TEXTS, **dict.fromkeys(("group", "job_type", "notes"), _TEXT)}
_SUMMARY = dict.fromkeys(("run_id", "name", "value_json"), _TEXT)
_TEXT_POINT = dict.fromkeys(("run_id", "metric", "host", "kind", "text"), _TEXT)
_TEXT_POINT |= {"rank": "UInt32", "attempt": "UInt32", "step": "UInt64"}
_EVENT = dict.fromkeys(("id", "kind", "severity", "message", "run_id", "task_id", "worker_id"), _TEXT)
_EVENT |= {"attempt": "UInt32"}
_CHECKPOINT = dict.fromkeys(("id", "run_id", "worker_id", "path", "status", "reason"), _TEXT)
_CHECKPOINT |= {"attempt": "UInt32", "rank": "UInt32", "step": "UInt64", "epoch": "UInt64"}
_CHECKPOINT |= {"size_bytes": "UInt64"}
_ATTEMPT = {"run_id": _TEXT, "metric": _TEXT, "rank": "UInt32", "device": "UInt16", "attempt": "UInt32"}
_ATTEMPT |= {"world": "UInt32"}
# Where a message calls a time by another name than its table.
_TIMES = {"runs": {"event_time": "updated_at_ms", "started_at": "started_at_ms"}}


def _messages(batches: Sequence[Columns], table: str, fields: dict[str, str], nullable: dict[str, str]) -> Table | None:
    rows = [row for batch in batches for row in getattr(batch, table)]
    if not rows:
        return None
    columns = {}
    for name, source in _TIMES.get(table, {"event_time": "event_time_ms"}).items():
        columns[name] = _numbers(TIME, [getattr(row, source) for row in rows])
    for name, kind in fields.items():
        values = [getattr(row, name) for row in rows]
        columns[name] = Column(kind, [list(value) for value in values] if kind == _TEXTS else values)
    for name, kind in nullable.items():
        values = [getattr(row, name) if row.HasField(name) else None for row in rows]
        columns[name] = Column(f"Nullable({kind})", values)
    return Table(columns)


def _logs(batches: Sequence[Columns]) -> Table | None:
    lines = [
        (line, log_entry(line, batch.batch_id, position))
        for batch in batches
        for position, line in enumerate(batch.logs)
    ]
    if not lines:
        return None
    tasks = words_of(line.task_id for line, _ in lines)
    return Table(
        {
            "event_time": _numbers(TIME, [entry.timestamp_ms for _, entry in lines]),
            "id": Column(_TEXT, [entry.id for _, entry in lines]),
            "sequence": Column("UInt64", [line.sequence for line, _ in lines]),
            "level": words_of(str(entry.level) for _, entry in lines),
            "message": Column(_TEXT, [entry.message for _, entry in lines]),
            "source": words_of(entry.source for _, entry in lines),
            "run_id": tasks,
            "task_id": tasks,
            "worker_id": words_of(line.worker_id for line, _ in lines),
            "host": words_of(line.host for line, _ in lines),
            "rank": Column("UInt32", [line.rank for line, _ in lines]),
            "attempt": Column("UInt32", [line.attempt for line, _ in lines]),
            "stream": words_of(line.stream for line, _ in lines),
        }
    )


def _numbers(kind: str, values: list[int]) -> Column:
    return Column(kind, np.array(values, np.int64))


def _joined(parts: list[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, kind)
