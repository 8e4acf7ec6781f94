"""What neptune-exporter has written: Parquet files with a row per attribute of a run, and per point of its series."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.runs import ImportedRun

__all__ = ["find_neptune_runs", "is_neptune_file"]

_COLUMNS = ("run_id", "attribute_path", "attribute_type", "step", "timestamp", "float_value")
_VALUES = {"int": "int_value", "float": "float_value", "string": "string_value", "bool": "bool_value"}
_SERIES = "float_series"


def is_neptune_file(path: Path) -> bool:
    return path.suffix == ".parquet" and set(_COLUMNS) <= set(pq.read_schema(path).names)


def find_neptune_runs(path: Path) -> list[ImportedRun]:
    """Every run of a file, or of the files below a folder; a run's parts lie in one folder."""
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    folders: dict[Path, list[Path]] = {}
    for file in files:
        if is_neptune_file(file):
            folders.setdefault(file.parent, []).append(file)
    return [run for parts in folders.values() for run in _runs(parts)]


def _runs(parts: list[Path]) -> Iterator[ImportedRun]:
    size = sum(part.stat().st_size for part in parts)
    found: dict[str, ImportedRun] = {}
    for row in _rows(parts):
        name = str(row["run_id"])
        run = found.get(name)
        if run is None:
            run = found[name] = ImportedRun(run_id=_safe(name), name=name)
            run.project, run.status = str(row.get("project_id") or ""), "finished"
            run.parts = {f"{parts[0].name}/{size}": partial(_points, parts, name)}
        _note(run, row)
    yield from found.values()


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
        run.tags = tuple(row.get("string_set_value") or ())
    elif path == "sys/creation_time" and isinstance(row.get("datetime_value"), datetime):
        run.started_ms = round(row["datetime_value"].timestamp() * 1000)
    elif kind in _VALUES and not path.startswith("sys/"):
        run.config[path] = value
    elif kind not in _VALUES and not path.startswith("sys/"):
        run.unread[f"attributes of the kind {kind}"] += 1


def _points(parts: list[Path], name: str) -> Iterator[ImportedPoint]:
    for row in _rows(parts):
        value = row.get("float_value")
        if str(row["run_id"]) == name and row["attribute_type"] == _SERIES and value is not None:
            at = row["timestamp"]
            time_ms = round(at.timestamp() * 1000) if isinstance(at, datetime) else 0
            yield ImportedPoint(str(row["attribute_path"]), int(row["step"] or 0), time_ms, float(value))


def _rows(parts: list[Path]) -> Iterator[dict[str, Any]]:
    for part in parts:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=10_000):
                yield from batch.to_pylist()


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).strip("-._") or "run"
