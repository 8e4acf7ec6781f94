"""The series that a batch names. Senders repeat them in every batch, so a section of bytes that was read and checked
once is recognised by comparing bytes: then a head costs nothing, however many there are.
"""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strata.errors import InvalidArgument
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import SeriesKey, check_series, turn_of

__all__ = ["HeadMemory", "HeadTable", "SeriesHead"]

_MAX_TAGS = 4096
_MAX_BYTES = 32 << 20
# Below this many, reading them again is as cheap as looking them up.
_WORTH_IT = 16
_ID_TAG = 0x0A
_SERIES_TAG = 0x12


@dataclass(frozen=True, slots=True)
class SeriesHead:
    """A series as a batch names it: its identity, and what may differ from point to point."""

    key: SeriesKey
    unit: str = ""
    tags_json: str = ""
    turn: int = 0  # which attempt of its task measured its points; 0 is nobody's


@dataclass(frozen=True, slots=True, eq=False)
class HeadTable:
    """The heads of a batch, and the numbers under which its points name them. Batches with the same heads share one
    table, so what others derive from `heads` may be remembered under its identity."""

    heads: tuple[SeriesHead, ...]
    numbers: npt.NDArray[np.int64]
    turns: npt.NDArray[np.int64] | None = None  # of each head; None when none has one

    def positions(self, given: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Senders may number their series as they like; here an index is a position."""
        count = len(self.heads)
        if np.array_equal(self.numbers, np.arange(count)):
            if len(given) and not (given.min() >= 0 and given.max() < count):
                raise InvalidArgument(f"a point names series {int(given.max())}, but the batch describes {count}")
            return given
        order = np.argsort(self.numbers, kind="stable")
        known = self.numbers[order]
        if (known[1:] == known[:-1]).any():
            raise InvalidArgument("a series index is named twice in one batch")
        if len(given) and not np.isin(given, known).all():
            raise InvalidArgument("a point names a series that its batch does not describe")
        return order[np.searchsorted(known, given)]


class HeadMemory:
    """Tables by the bytes they came from, the least recently used forgotten first."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._known: OrderedDict[bytes, tuple[bytes, HeadTable]] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def table(self, message: Batch, raw: bytes | None) -> HeadTable:
        """The heads of `message`, checked; `raw` is what it was parsed from."""
        count = len(message.series)
        if raw is None or count < _WORTH_IT:
            return _read(message)
        start, name = _first_entry(raw)
        section, table = self._known.get(name, (b"", None))
        # As many heads in the message as in the section, and the section is in it: then they are the same.
        if table is not None and len(table.heads) == count and raw.startswith(section, start):
            self._known.move_to_end(name)
            return table
        table = _read(message)
        self._note(name, raw[start:], message, table)
        return table

    def _note(self, name: bytes, rest: bytes, message: Batch, table: HeadTable) -> None:
        only = Batch()
        only.series.extend(message.series)
        section = only.SerializeToString()
        if not name or not rest.startswith(section):
            return  # written in an order of its own: right, but not recognised
        old, _ = self._known.pop(name, (b"", None))
        self._known[name] = (section, table)
        self._bytes += len(section) - len(old)
        while self._bytes > self._max_bytes and len(self._known) > 1:
            _, (oldest, _) = self._known.popitem(last=False)
            self._bytes -= len(oldest)


def _first_entry(raw: bytes) -> tuple[int, bytes]:
    """Where the series begin, and the bytes of the first one: it tells senders apart. (0, b"") if they do not follow
    the batch id at once, as every common encoder writes them."""
    start = 0
    if raw[0] == _ID_TAG and raw[1] < 0x80:
        start = 2 + raw[1]
    if len(raw) < start + 4 or raw[start] != _SERIES_TAG:
        return 0, b""
    size, header = raw[start + 1], 2
    if size >= 0x80:
        size, header = (size & 0x7F) | raw[start + 2] << 7, 3
    return start, raw[start : start + header + size]


def _read(message: Batch) -> HeadTable:
    heads = [
        _head((one.run_id, one.metric, one.host, one.rank, one.device, one.unit, one.tags_json))
        for one in message.series
    ]
    turns = np.array([head.turn for head in heads], np.int64) if any(head.turn for head in heads) else None
    return HeadTable(tuple(heads), np.array([one.index for one in message.series], np.int64), turns)


# A head that passed once is not checked again, whichever batch it comes in.
_checked: dict[tuple[str, str, str, int, int, str, str], SeriesHead] = {}
_MAX_CHECKED = 200_000


def _head(parts: tuple[str, str, str, int, int, str, str]) -> SeriesHead:
    known = _checked.get(parts)
    if known is not None:
        return known
    key = check_series(SeriesKey(*parts[:5]))
    unit, tags = parts[5:]
    if len(unit) > 64 or len(tags) > _MAX_TAGS:
        raise InvalidArgument(f"unit or tags of metric {key.metric!r} are too long")
    if len(_checked) >= _MAX_CHECKED:
        _checked.clear()
    head = _checked[parts] = SeriesHead(key, unit, tags, turn_of(tags))
    return head
