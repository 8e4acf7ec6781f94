"""W&B's offline files (`run-*.wandb`), read without wandb: records in LevelDB's log format, each a protobuf of which
only what a run needs is read (proto/wandb.proto).

A file that is still being written ends in half a record; what is whole is read. Blocks with a bad checksum are counted.
"""

import fnmatch
import json
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from strata.errors import DataError
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.runs import ImportedRun, flattened
from strata.protocol.generated.wandb_pb2 import HistoryItem, Record

__all__ = ["find_wandb_files", "read_wandb_run"]

_MAGIC = b":W&B"
_BLOCK = 32 * 1024
_HEAD = 7  # checksum, length, kind
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def find_wandb_files(path: Path) -> list[Path]:
    """Below a `wandb` folder, one run's folder, or the file itself."""
    return [path] if path.is_file() else sorted(path.rglob("run-*.wandb"))


def read_wandb_run(path: Path) -> ImportedRun:
    """What the file says of its run. Its points are read once here, to know what the run is, and again when they are
    asked for: a long run need not fit into memory."""
    run = ImportedRun(run_id=path.stem.removeprefix("run-"), ended_ms=round(path.stat().st_mtime * 1000))
    axes: dict[str, str] = {}
    for record in _records(path, run):
        _note(run, axes, record)
    run.parts = {f"{path.name}/{path.stat().st_size}": lambda: _points(path, axes, run)}
    return run


def _note(run: ImportedRun, axes: dict[str, str], record: Record) -> None:
    kind = record.WhichOneof("kind")
    if kind == "history":
        odd = sum(not any(True for _ in flattened({item.key or "x": _value(item)})) for item in record.history.item)
        if odd:
            run.unread["values that are no numbers"] += odd
    elif kind == "run":
        said = record.run
        run.run_id, run.project, run.name = said.run_id or run.run_id, said.project, said.display_name
        run.group, run.job_type, run.notes, run.tags = said.run_group, said.job_type, said.notes, tuple(said.tags)
        run.started_ms = said.start_time.seconds * 1000 + said.start_time.nanos // 1_000_000
        _set(run, run.config, said.config.update)
    elif kind in ("config", "summary"):
        values, change = getattr(run, kind), getattr(record, kind)
        _set(run, values, change.update)
        for item in change.remove:
            values.pop(item.key, None)
    elif kind == "metric" and record.metric.step_metric:
        axes[record.metric.glob_name or record.metric.name] = record.metric.step_metric
    elif kind == "exit":
        code = record.exit.exit_code
        run.status, run.reason = ("failed", f"exit code {code}") if code else ("finished", "")


def _set(run: ImportedRun, values: dict[str, Any], items: Any) -> None:
    for item in items:
        *outer, last = item.nested_key or [item.key]
        if not last or (outer or [last])[0].startswith("_"):
            continue  # wandb's own
        try:
            value = json.loads(item.value_json)
        except (ValueError, RecursionError):
            run.unread[f"{last}: {item.value_json[:40]!r} is no JSON"] += 1
            continue
        place: Any = values
        for name in outer:
            place = place.setdefault(name, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
        else:
            run.unread[f"{last}: what it lies in is a value"] += 1


def _points(path: Path, axes: dict[str, str], run: ImportedRun) -> Iterator[ImportedPoint]:
    """Every number of the history. A metric with a step metric of its own lies at that metric's value, where it is a
    whole number."""
    step = 0
    for record in _records(path, None):
        if record.WhichOneof("kind") != "history":
            continue
        row: dict[str, Any] = {}
        for item in record.history.item:
            row[".".join(item.nested_key) if item.nested_key else item.key] = _value(item)
        numbers = dict(flattened(row))
        step = record.history.step.num if record.history.HasField("step") else _whole(numbers.get("_step"), step + 1)
        time_ms = _whole(numbers.get("_timestamp", 0.0) * 1000, 0) or (run.started_ms or 0) + step
        for name, value in numbers.items():
            if not name.startswith("_"):
                yield ImportedPoint(name, _step_of(name, step, axes, numbers), time_ms, value)


def _step_of(name: str, step: int, axes: dict[str, str], numbers: dict[str, float]) -> int:
    axis = axes.get(name) or next((axis for glob, axis in axes.items() if fnmatch.fnmatchcase(name, glob)), "")
    at = numbers.get(axis) if axis and axis != name else None
    return int(at) if at is not None and at >= 0 and at.is_integer() else step


def _whole(number: float | None, otherwise: int) -> int:
    return round(number) if number is not None and math.isfinite(number) else otherwise


def _value(item: HistoryItem) -> Any:
    kind = item.WhichOneof("value")
    if kind in ("boolean", "integer", "number", "text"):
        return getattr(item, kind)
    text = item.json if kind == "json" else item.value_json
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _records(path: Path, run: ImportedRun | None) -> Iterator[Record]:
    for data in _chunks(path, run):
        try:
            yield Record.FromString(data)
        except DecodeError:
            if run is not None:
                run.unread["records that are no protobuf"] += 1


def _chunks(path: Path, run: ImportedRun | None) -> Iterator[bytes]:
    """LevelDB's framing: blocks of 32 KiB, in them pieces with checksum, length and kind."""
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        whole: bytes | None = None
        if block[:4] != _MAGIC:
            raise DataError(f"{path} is no file of W&B: it does not begin with {_MAGIC.decode()}", file=str(path))
        place = _HEAD
        while block:
            while place + _HEAD <= len(block):
                checksum, length, kind = struct.unpack_from("<IHB", block, place)
                piece = block[place + _HEAD : place + _HEAD + length]
                if kind == 0 and length == 0:
                    break  # padding
                if len(piece) < length and len(block) < _BLOCK:
                    return  # still being written
                place += _HEAD + length
                if zlib.crc32(bytes([kind]) + piece) != checksum:
                    whole = None
                    if run is not None:
                        run.unread["pieces with a wrong checksum"] += 1
                    continue
                if kind in (_FULL, _FIRST):
                    whole = piece
                elif whole is not None:  # else its first piece was damaged
                    whole += piece
                if kind in (_FULL, _LAST) and whole is not None:
                    yield whole
                    whole = None
            block, place = file.read(_BLOCK), 0
