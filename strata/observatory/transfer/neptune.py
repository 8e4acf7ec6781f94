"""What neptune-exporter has written: Parquet files with a row per attribute of a run, and per point of its series."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from strata.data.table.arrow import arrow
from strata.errors import DataError, MissingExtra
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.runs import ImportedRun

__all__ = ["find_neptune_folders", "is_neptune_file", "read_neptune_runs"]

_COLUMNS = ("run_id", "attribute_path", "attribute_type", "step", "timestamp", "float_value")
_VALUES = {"int": "int_value", "float": "float_value", "string": "string_value", "bool": "bool_value"}
_SERIES = "float_series"


def is_neptune_file(path: Path) -> bool:
    """Raises DataError for a .parquet file that is none."""
    if path.suffix != ".parquet":
        return False
    try:
        return set(_COLUMNS) <= set(arrow("parquet").read_schema(path).names)
    except MissingExtra as error:
        raise DataError(f"{path} cannot be read: {error.message}", file=str(path), hint=error.hint) from None
    except (arrow().ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {_said(error)}", file=str(path)) from None


def find_neptune_folders(path: Path) -> list[list[Path]]:
    """The Parquet files below a folder, folder by folder: a run's parts lie in one."""
    folders: dict[Path, list[Path]] = {}
    for file in sorted(file for file in path.rglob("*.parquet") if file.is_file()):
        folders.setdefault(file.parent, []).append(file)
    return list(folders.values())


def read_neptune_runs(parts: list[Path]) -> Iterator[ImportedRun]:
    """Every run of these files, which are one export."""
    size = sum(part.stat().st_size for part in parts)
    found: dict[str, ImportedRun] = {}
    odd: Counter[str] = Counter()
    for row in _rows(parts, odd):
        name = _name(row)
        if name is None:
            odd["rows without a run or an attribute"] += 1
            continue
        run = found.get(name)
        if run is None:
            run = found[name] = ImportedRun(run_id=_safe(name), name=name)
            run.project, run.status = str(row.get("project_id") or ""), "finished"
            run.parts = {f"{parts[0].name}/{size}": partial(_points, parts, name, run.unread)}
        _note(run, row)
    if odd and not found:
        raise DataError(f"{parts[0]} holds no run: {', '.join(odd)}", file=str(parts[0]))
    for run in list(found.values())[:1]:
        run.unread += odd  # of all runs: it is said once
    yield from found.values()


def _name(row: dict[str, Any]) -> str | None:
    whole = row["run_id"] is not None and row["attribute_path"] is not None
    return str(row["run_id"]) if whole else None


def _note(run: ImportedRun, row: dict[str, Any]) -> None:
    path, kind = str(row["attribute_path"]), str(row["attribute_type"])
    if kind == _SERIES:
        return
    value = row.get(_VALUES.get(kind, ""))
    if path == "sys/name" and value:
        run.name = str(value)
    elif path == "sys/description" and value:
        run.notes = str(value)
    elif path == "sys/tags":
        run.tags = tuple(str(tag) for tag in row.get("string_set_value") or ())
    elif path == "sys/creation_time" and isinstance(row.get("datetime_value"), datetime):
        run.started_ms = _ms(row["datetime_value"])
    elif kind in _VALUES and not path.startswith("sys/"):
        run.config[path] = value
    elif kind not in _VALUES and not path.startswith("sys/"):
        run.unread[f"attributes of the kind {kind}"] += 1


def _points(parts: list[Path], name: str, unread: Counter[str]) -> Iterator[ImportedPoint]:
    for row in _rows(parts, Counter()):  # what cannot be read was counted
        if _name(row) != name or row["attribute_type"] != _SERIES:
            continue
        step, value = _whole(row["step"]), row.get("float_value")
        if step is not None and isinstance(value, int | float):
            yield ImportedPoint(str(row["attribute_path"]), step, _ms(row["timestamp"]), float(value))
        else:
            unread[f"points of {str(row['attribute_path'])[:80]} without a step or a value"] += 1


def _whole(step: Any) -> int | None:
    """A step as it was exported: a decimal, a number, or none; None for what is no step."""
    if step is None:
        return 0
    if not isinstance(step, int | float | Decimal):
        return None
    try:
        return int(step)
    except (ValueError, OverflowError):  # NaN, or an infinity
        return None


def _ms(at: Any) -> int:
    """0 for what is no time. A time without a zone is UTC."""
    if not isinstance(at, datetime):
        return 0
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _rows(parts: list[Path], odd: Counter[str]) -> Iterator[dict[str, Any]]:
    """A part that is damaged is read as far as it can be."""
    for part in parts:
        try:
            with arrow("parquet").ParquetFile(part) as file:
                for batch in file.iter_batches(batch_size=10_000):
                    yield from batch.to_pylist()
        except (arrow().ArrowException, OSError, ValueError, OverflowError) as error:
            odd[f"the rest of {part.name}: {_said(error)}"] += 1


def _said(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).strip("-._") or "run"
