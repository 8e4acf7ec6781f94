"""CSV files with metrics. Long: a row is one point (`metric, step, value`), as `strata export` writes it; wide: a
column is one metric, by `step`.

A cell that holds no number takes nothing with it but its own point; it is counted, and the first one is named.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from strata.errors import DataError, InvalidArgument
from strata.observatory.records.times import parse_time
from strata.observatory.transfer.batches import ImportedPoint
from strata.types.metrics import NO_DEVICE

__all__ = ["read_csv"]

_STEP_NAMES = ("step", "global_step", "_step", "iteration", "epoch")
_TIME_NAMES = ("event_time_ms", "event_time", "timestamp", "wall_time", "_timestamp", "time")
_WORDS = {"nan": float("nan"), "": None, "null": None, "none": None}

Row = dict[str, str]


def read_csv(path: Path, unread: Counter[str], now_ms: int) -> Iterator[ImportedPoint]:
    """Times are Unix seconds, ISO 8601 or ClickHouse's form, and milliseconds in `event_time_ms`; rows without one get
    `now_ms` plus their number, so that order is kept."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.DictReader(file)
        try:
            names = [name.strip() for name in rows.fieldnames or ()]
        except csv.Error as error:
            raise DataError(f"{path} has no header that can be read: {error}", file=str(path)) from None
        rows.fieldnames = names
        cells = _Cells(names, now_ms, unread)
        if {"metric", "value"} <= set(names):
            yield from _long(_read(rows, unread), cells)
        elif cells.step_name is not None:
            yield from _wide(_read(rows, unread), names, cells)
        else:
            raise DataError(
                f"{path} has no column metric and value, and none of {', '.join(_STEP_NAMES)}",
                file=str(path),
                hint="Long form: metric,step,value. Wide form: step, then one column per metric.",
            )


class _Cells:
    """The numbers of a row. Those that are none are counted."""

    def __init__(self, names: list[str], now_ms: int, unread: Counter[str]) -> None:
        self.step_name = _first(names, _STEP_NAMES)
        self._time_name = _first(names, _TIME_NAMES)
        self._now_ms = now_ms
        self._unread = unread
        self._odd = ""

    def number(self, text: str | None, row: int) -> float | None:
        """None for an empty cell, too, which is not counted."""
        lowered = (text or "").strip().lower()
        if lowered in _WORDS:
            return _WORDS[lowered]
        try:
            return float(lowered)
        except ValueError:
            self._count(text, row)
            return None

    def step(self, row: Row, number: int) -> int | None:
        """0 where the file or the row has none; None where it is no step."""
        return self.whole(row.get(self.step_name or ""), number)

    def whole(self, text: str | None, row: int, default: int = 0) -> int | None:
        if not (text or "").strip():
            return default
        found = self.number(text, row)
        if found is not None and found.is_integer():  # neither 1.5, which no step is, nor inf and nan
            return int(found)
        if found is not None:
            self._count(text, row)
        return None

    def time_ms(self, row: Row, number: int) -> int:
        text = row.get(self._time_name or "")
        if (text or "").strip().lower() in _WORDS:
            return self._now_ms + number
        try:
            if self._time_name == "event_time_ms":
                return round(float(text or ""))
            return round(parse_time("time", text) * 1000)
        except (InvalidArgument, ValueError, OverflowError):
            self._count(text, number)
            return self._now_ms + number

    def _count(self, text: str | None, row: int) -> None:
        told = f"cells that hold no number, step or time, the first one {(text or '')[:40]!r} in row {row + 2}"
        self._odd = self._odd or told
        self._unread[self._odd] += 1


def _read(rows: "csv.DictReader[str]", unread: Counter[str]) -> Iterator[Row]:
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            unread[f"rows that are no CSV: {error}"] += 1


def _long(rows: Iterator[Row], cells: _Cells) -> Iterator[ImportedPoint]:
    for number, row in enumerate(rows):
        value, step, rank, device = (
            cells.number(row["value"], number),
            cells.step(row, number),
            cells.whole(row.get("rank"), number),
            cells.whole(row.get("device"), number, NO_DEVICE),
        )
        if value is not None and step is not None and rank is not None and device is not None:
            name, host, unit = row["metric"] or "", row.get("host") or "", row.get("unit") or ""
            yield ImportedPoint(name, step, cells.time_ms(row, number), value, rank, host, device, unit)


def _wide(rows: Iterator[Row], names: list[str], cells: _Cells) -> Iterator[ImportedPoint]:
    metrics = [name for name in names if name not in (*_STEP_NAMES, *_TIME_NAMES) and name]
    for number, row in enumerate(rows):
        step = cells.step(row, number)
        if step is None:
            continue
        time_ms = cells.time_ms(row, number)
        for name in metrics:
            value = cells.number(row[name], number)
            if value is not None:
                yield ImportedPoint(name, step, time_ms, value)


def _first(names: list[str], wanted: tuple[str, ...]) -> str | None:
    return next((name for name in wanted if name in names), None)
