"""CSV files with metrics. Long: a row is one point (`metric, step, value`); wide: a column is one metric, by `step`."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from strata.errors import DataError
from strata.observatory.transfer.batches import ImportedPoint

__all__ = ["read_csv"]

_STEP_NAMES = ("step", "global_step", "_step", "iteration", "epoch")
_TIME_NAMES = ("event_time", "timestamp", "wall_time", "_timestamp", "time")
_WORDS = {"nan": float("nan"), "": None, "null": None, "none": None}


def read_csv(path: Path, now_ms: int) -> Iterator[ImportedPoint]:
    """Times are Unix seconds; rows without one get `now_ms` plus their number, so that order is kept."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        names = [name.strip() for name in rows.fieldnames or ()]
        rows.fieldnames = names
        read = _long if {"metric", "value"} <= set(names) else _wide
        yield from read(rows, names, path, now_ms)


def _long(rows: "csv.DictReader[str]", names: list[str], path: Path, now_ms: int) -> Iterator[ImportedPoint]:
    step_name, time_of = _first(names, _STEP_NAMES), _timer(names, now_ms)
    for number, row in enumerate(rows):
        value = _number(row["value"], path, number)
        if value is not None:
            step = int(_number(row.get(step_name or "") or "0", path, number) or 0)
            rank = int(row.get("rank") or 0)
            yield ImportedPoint(row["metric"], step, time_of(row, number), value, rank, row.get("host") or "")


def _wide(rows: "csv.DictReader[str]", names: list[str], path: Path, now_ms: int) -> Iterator[ImportedPoint]:
    step_name, time_of = _first(names, _STEP_NAMES), _timer(names, now_ms)
    if step_name is None:
        raise DataError(
            f"{path} has no column metric and value, and none of {', '.join(_STEP_NAMES)}",
            file=str(path),
            hint="Long form: metric,step,value. Wide form: step, then one column per metric.",
        )
    metrics = [name for name in names if name not in (*_STEP_NAMES, *_TIME_NAMES) and name]
    for number, row in enumerate(rows):
        step = int(_number(row[step_name], path, number) or 0)
        for name in metrics:
            value = _number(row[name], path, number)
            if value is not None:
                yield ImportedPoint(name, step, time_of(row, number), value)


def _timer(names: list[str], now_ms: int) -> Callable[[dict[str, str], int], int]:
    column = _first(names, _TIME_NAMES)

    def time_of(row: dict[str, str], number: int) -> int:
        text = row.get(column or "")
        return round(float(text) * 1000) if text else now_ms + number

    return time_of


def _first(names: list[str], wanted: tuple[str, ...]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _number(text: str | None, path: Path, row: int) -> float | None:
    lowered = (text or "").strip().lower()
    if lowered in _WORDS:
        return _WORDS[lowered]
    try:
        return float(lowered)
    except ValueError:
        raise DataError(f"{path}, row {row + 2}: {text!r} is no number", file=str(path), row=row) from None
