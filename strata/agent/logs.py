"""What ranks print, line by line, on its way to the observatory. Ranks write to files that are followed here, so a dead
agent never stops one; what cannot be passed on in time is skipped and counted, never silently lost. What was passed on
is given back to the disk, so that a task of weeks does not fill it.
"""

import contextlib
import ctypes
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strata.agent.causes import CauseWatch
from strata.types.logs import LogLevel

__all__ = ["Line", "Tail", "guess_level"]

MAX_LINE_BYTES = 16 * 1024
READ_BYTES = 512 * 1024
MAX_BACKLOG_BYTES = 64 * 1024 * 1024
KEEP_BYTES = 8 * 1024 * 1024  # of what was passed on, for whoever looks at the file itself
SHED_BYTES = 8 * 1024 * 1024

_PUNCH_HOLE = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE, which must come with FALLOC_FL_KEEP_SIZE
_LEVEL = re.compile(r"\b(debug|info|notice|warn(?:ing)?|error|critical|fatal)\b", re.IGNORECASE)
_TRACE = re.compile(r"(Traceback \(most recent call last\)|[A-Za-z_.]+(?:Error|Exception)(?::|$)|Segmentation fault)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line and where it began in its file, which keeps lines of one millisecond in order."""

    offset: int
    text: str
    level: LogLevel


def guess_level(text: str) -> LogLevel:
    """From the words that loggers put at the start of a line; what says nothing is info."""
    if _TRACE.match(text):
        return LogLevel.ERROR
    found = _LEVEL.search(text[:64])
    return LogLevel.parse(found[1]) if found else LogLevel.INFO


class Tail:
    """Follows one file from `offset`. `causes` has seen every line, for the case of a death."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset  # of the first byte that was not passed on
        self.causes = CauseWatch()
        self._overlong = 0  # bytes of the current line that are not shown
        self.holes = True  # whether its file system can free the start of a file
        self._shed = 0  # bytes at the start of the file that take no room any more

    def read(self, *, final: bool = False) -> Iterator[Line]:
        """The lines that are complete by now, or with `final` also an unfinished last one; at most READ_BYTES of them
        per call, so that a chatty rank does not starve the others. Of a backlog that is too large its start is read,
        where the reason of a flood stands, and its end."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size < self.offset:  # it was cut, by us or by somebody else: it begins anew
                    self.offset = self._shed = self._overlong = 0
                file.seek(self.offset)
                data = file.read(READ_BYTES)
        except OSError:
            return
        too_large = size - self.offset > MAX_BACKLOG_BYTES
        yield from self._lines(data, final=final and self.offset + len(data) >= size)
        if too_large:
            yield self._skip(size)

    @property
    def behind(self) -> bool:
        try:
            return self.path.stat().st_size > self.offset
        except OSError:
            return False

    def shed(self, noted: int) -> bool:
        """Frees what was passed on before `noted`, the offset from which a new agent would go on, but for the last
        KEEP_BYTES. Offsets stay as they are: the rank appends on. True when the file begins anew instead, which is
        for file systems without holes."""
        end = noted - KEEP_BYTES
        if end - self._shed < SHED_BYTES:
            return False
        with contextlib.suppress(OSError), self.path.open("r+b") as file:
            self.holes = self.holes and _punch(file.fileno(), end)
            if self.holes:
                self._shed = end
            elif noted == self.offset == os.fstat(file.fileno()).st_size:
                file.truncate(0)  # a rank that prints within these microseconds loses a line
                self.offset = self._shed = 0
                return True
        return False

    def _skip(self, size: int) -> Line:
        skipped = size - READ_BYTES - self.offset
        line = Line(self.offset, f"… {skipped} bytes of output were skipped: more than can be passed on", LogLevel.WARN)
        self.offset += skipped
        self._overlong = 0
        return line

    def _lines(self, data: bytes, *, final: bool) -> Iterator[Line]:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield from self._line(data[start:end], end - start + 1)
            start = end + 1
        rest = data[start:]
        if rest and final:
            yield from self._line(rest, len(rest))
        elif len(rest) >= MAX_LINE_BYTES:  # a line without end: its head is shown once, the rest only counted
            if not self._overlong:
                yield self._made(rest[:MAX_LINE_BYTES], " …")
            self._overlong += len(rest)
            self.offset += len(rest)

    def _line(self, raw: bytes, num_bytes: int) -> Iterator[Line]:
        if self._overlong:
            text = f"… the line above went on for {self._overlong + len(raw) - MAX_LINE_BYTES} more bytes"
            yield Line(self.offset, text, LogLevel.WARN)
            self._overlong = 0
        elif raw.strip():
            more = len(raw) - MAX_LINE_BYTES
            yield self._made(raw[:MAX_LINE_BYTES], f" … ({more} more bytes)" if more > 0 else "")
        self.offset += num_bytes

    def _made(self, raw: bytes, tail: str) -> Line:
        text = raw.decode(errors="replace").rstrip("\r")
        if "\r" in text:
            text = text.rpartition("\r")[2]  # a progress bar: what a terminal would show at the end
        self.causes.feed(text)
        return Line(self.offset, text + tail, guess_level(text))


def _punch(descriptor: int, end: int) -> bool:
    """Frees the first `end` bytes as a hole in the file; False where the file system has no holes."""
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return bool(fallocate(descriptor, _PUNCH_HOLE, 0, end) == 0)
