"""TensorBoard event files, read without TensorFlow: of each Event only what a scalar needs (proto/tensorboard.proto).

A file that is still being written ends in half a record; what is whole is read. Checksums are not verified.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError

from strata.errors import DataError
from strata.observatory.transfer.batches import ImportedPoint
from strata.protocol.generated.tensorboard_pb2 import Event, Tensor

__all__ = ["find_event_files", "read_event_file"]

# How one number of TensorFlow's DT_FLOAT, DT_DOUBLE, DT_INT32 and DT_INT64 lies in a tensor's content.
_CONTENT = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}


def find_event_files(path: Path) -> dict[str, list[Path]]:
    """Run names and their files: every folder below `path` that holds event files is a run, as TensorBoard sees it."""
    if path.is_file():
        return {path.absolute().parent.name or "import": [path]}
    found: dict[str, list[Path]] = {}
    for file in sorted(file for file in path.rglob("*tfevents*") if file.is_file()):
        place = file.parent.relative_to(path)
        name = path.absolute().name if place == Path() else "-".join(place.parts)  # of `.` it is the folder's own
        found.setdefault(name, []).append(file)
    return found


def read_event_file(path: Path, unread: Counter[str]) -> Iterator[ImportedPoint]:
    """Every scalar of the file, in order. What is none, and records that are no events, are counted."""
    for record in _records(path):
        try:
            event = Event.FromString(record)
        except DecodeError:
            unread["records that are no event"] += 1
            continue
        time_ms = round(event.wall_time * 1000) if math.isfinite(event.wall_time) else 0
        for item in event.summary.value:
            value = item.simple_value if item.HasField("simple_value") else _number(item.tensor)
            if item.tag and value is not None:
                yield ImportedPoint(item.tag, event.step, time_ms, value)
            else:
                unread["values that are no numbers"] += 1


def _number(tensor: Tensor) -> float | None:
    """The one number of a scalar tensor; None for anything else (images, histograms, text)."""
    listed = [*tensor.float_val, *tensor.double_val, *tensor.int_val, *tensor.int64_val]
    if len(listed) == 1:
        return float(listed[0])
    form = _CONTENT.get(tensor.dtype)
    if form is None or len(tensor.tensor_content) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, tensor.tensor_content)[0])


def _records(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while len(head := file.read(12)) == 12:
            size = struct.unpack("<Q", head[:8])[0]
            if size > 1 << 30:
                place = file.tell() - len(head)
                raise DataError(
                    f"{path} is no event file from byte {place} on: a record of {size} bytes", file=str(path)
                )
            data = file.read(size)
            if len(data) < size or len(file.read(4)) < 4:
                return
            yield data
