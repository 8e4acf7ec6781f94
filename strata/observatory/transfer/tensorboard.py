"""TensorBoard event files, read without TensorFlow: records, and of each Event only what a scalar needs.

A file that is still being written ends in half a record; what is whole is read. Checksums are not verified.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from strata.errors import DataError
from strata.observatory.transfer.batches import ImportedPoint

__all__ = ["find_event_files", "read_event_file"]

_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9
_PACKED = {_FLOAT: "<f", _DOUBLE: "<d", _INT32: "<i", _INT64: "<q"}

Field = tuple[int, int, bytes | int]  # number, wire type, value


def find_event_files(path: Path) -> dict[str, list[Path]]:
    """Run names and their files: every folder below `path` that holds event files is a run, as TensorBoard sees it."""
    if path.is_file():
        return {path.parent.name or "import": [path]}
    found: dict[str, list[Path]] = {}
    for file in sorted(path.rglob("*tfevents*")):
        place = file.parent.relative_to(path)
        name = path.name if place == Path() else "-".join(place.parts)
        found.setdefault(name, []).append(file)
    if not found:
        raise DataError(f"no TensorBoard event file lies in {path}", file=str(path))
    return found


def read_event_file(path: Path) -> Iterator[ImportedPoint]:
    """Every scalar of the file, in order."""
    for record in _records(path):
        wall_time, step, summaries = 0.0, 0, []
        for number, _, value in _fields(record, path):
            if number == 1 and isinstance(value, bytes):
                wall_time = struct.unpack("<d", value)[0]
            elif number == 2 and isinstance(value, int):
                step = value
            elif number == 5 and isinstance(value, bytes):
                summaries.append(value)
        for summary in summaries:
            for number, _, value in _fields(summary, path):
                if number == 1 and isinstance(value, bytes):
                    yield from _scalar(value, step, round(wall_time * 1000), path)


def _scalar(body: bytes, step: int, time_ms: int, path: Path) -> Iterator[ImportedPoint]:
    tag, value = "", None
    for number, _, content in _fields(body, path):
        if number == 1 and isinstance(content, bytes):
            tag = content.decode("utf-8", "replace")
        elif number == 2 and isinstance(content, bytes):
            value = struct.unpack("<f", content)[0]
        elif number == 8 and isinstance(content, bytes):
            value = _tensor(content, path)
    if tag and value is not None:
        yield ImportedPoint(tag, step, time_ms, float(value))


def _tensor(body: bytes, path: Path) -> float | None:
    """The one number of a scalar tensor; None for anything else (images, histograms, text)."""
    kind, raw = 0, b""
    for number, wire, content in _fields(body, path):
        if number == 1 and isinstance(content, int):
            kind = content
        elif number in (4, 5, 6) and isinstance(content, bytes):
            raw = content
        elif number in (7, 10) and wire == 0 and isinstance(content, int):
            return float(content)
    form = _PACKED.get(kind)
    if form is None or len(raw) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, raw)[0])


def _records(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while len(head := file.read(12)) == 12:
            size = struct.unpack("<Q", head[:8])[0]
            if size > 1 << 30:
                raise DataError(f"{path} is no event file: it begins a record of {size} bytes", file=str(path))
            data = file.read(size)
            if len(data) < size or len(file.read(4)) < 4:
                return
            yield data


def _fields(body: bytes, path: Path) -> Iterator[Field]:
    """The protobuf fields of one message."""
    place = 0
    try:
        while place < len(body):
            tag, place = _varint(body, place)
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                value, place = _varint(body, place)
                yield number, wire, value
                continue
            if wire == 2:
                size, place = _varint(body, place)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            if place + size > len(body):
                raise ValueError("a field that is longer than its message")
            yield number, wire, body[place : place + size]
            place += size
    except (IndexError, ValueError) as error:
        raise DataError(f"{path} is no event file: {error}", file=str(path)) from None


def _varint(body: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, place
        shift += 7
