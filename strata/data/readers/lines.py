"""Text files cut into blocks of whole records in one pass over the bytes: what jsonl and csv have in common."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from strata.data.readers.base import BLOCK_BYTES, BlockInfo

__all__ = ["LineBlocks", "scan_lines"]

_CHUNK = 8 << 20
_NEWLINE, _QUOTE, _RETURN = 10, 34, 13


class LineBlocks:
    """The result of a scan: blocks by byte range, and a hash of all bytes."""

    def __init__(self) -> None:
        self.blocks: list[BlockInfo] = []
        self.hash = blake2b(digest_size=16)

    def add(self, start: int, stop: int, rows: int) -> None:
        if rows:
            self.blocks.append(BlockInfo(num_rows=rows, num_bytes=stop - start, start=start, stop=stop))


def scan_lines(file: BinaryIO, start: int = 0, *, quoted: bool = False) -> LineBlocks:
    """Cuts at line ends; with `quoted`, line ends inside double quotes do not count. Empty lines are no records."""
    found = LineBlocks()
    block_start, stop, rows = start, start, 0
    for ends, blank in _record_ends(file, start, quoted, found):
        records = np.concatenate(([0], np.cumsum(~blank)))
        first = 0
        while (cut := int(np.searchsorted(ends, block_start + BLOCK_BYTES))) < len(ends):
            found.add(block_start, int(ends[cut]), rows + int(records[cut + 1] - records[first]))
            block_start, first, rows = int(ends[cut]), cut + 1, 0
        rows += int(records[-1] - records[first])
        stop = int(ends[-1]) if len(ends) else stop
    found.add(block_start, stop, rows)
    return found


def _record_ends(
    file: BinaryIO, start: int, quoted: bool, found: LineBlocks
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """(ends of records, which of them are blank), chunk by chunk."""
    file.seek(start)
    at, last, parity, previous = start, start, 0, b""
    while chunk := file.read(_CHUNK):
        found.hash.update(chunk)
        data = np.frombuffer(previous + chunk, dtype=np.uint8)
        is_end = data == _NEWLINE
        is_end[: len(previous)] = False
        if quoted:
            quotes = np.cumsum(data == _QUOTE) + parity - previous.count(b'"')
            is_end &= quotes % 2 == 0
            parity = int(quotes[-1]) % 2
        places = np.flatnonzero(is_end)
        ends = places + (at + 1 - len(previous))
        lengths = np.diff(ends, prepend=last)
        yield ends, (lengths == 1) | ((lengths == 2) & (data[np.maximum(places - 1, 0)] == _RETURN))
        at += len(chunk)
        last = int(ends[-1]) if len(ends) else last
        previous = chunk[-1:]
    if at > last:
        # The last line may lack its end; an open quote also ends here, and the reader will say where it began.
        yield np.array([at]), np.array([False])
