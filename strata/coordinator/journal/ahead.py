"""Records that were told before they are durable: a file that a coordinator which was killed finds again, because the
kernel has it, and that nobody waits for the disk to write.
"""

import logging
import os
import struct
import zlib
from pathlib import Path

from strata.coordinator.journal.base import Record

__all__ = ["Ahead"]

_log = logging.getLogger(__name__)

_BYTES = 1 << 20  # a release of 10,000 ranks takes 170 kB
_SUM = struct.Struct("<II")  # of what follows: its CRC, its length
_HEAD = struct.Struct("<qdH")  # number, time, length of the kind


class Ahead:
    """Holds the records behind the last one that is durable; as long as there are none, it begins anew. It has its
    whole length from the start, so that a full disk is no reason to lose one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._end = 0
        self._last = 0  # the number of the newest record

    def open(self, last_seq: int) -> list[Record]:
        """Returns what was told and is not in the journal, which ends with this number."""
        found: list[Record] = []
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            found = _read(os.pread(self._file, _BYTES, 0), last_seq)
            missing = _BYTES - os.fstat(self._file).st_size
            if missing > 0:
                os.pwrite(self._file, bytes(missing), _BYTES - missing)
                os.fsync(self._file)
        except OSError as error:
            self._give_up(error)
        return found

    def put(self, record: Record) -> bool:
        """Whether it is there if this process is killed now."""
        head, size = _head(record)
        if self._file < 0 or self._end + size > _BYTES:
            return False
        try:
            written = os.pwritev(self._file, (head, record.first, *record.rest), self._end)
        except OSError as error:
            self._give_up(error)
            return False
        if written < size:  # no room: the next one goes over it
            return False
        self._end += size
        self._last = record.seq
        return True

    def forget(self, seq: int) -> None:
        """All up to this number are durable."""
        if seq >= self._last:
            self._end = 0

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _give_up(self, error: OSError) -> None:
        self.close()
        _log.warning("every release of a barrier waits for the disk now: %s: %s", self._path, error.strerror)


def _head(record: Record) -> tuple[bytes, int]:
    """What stands before its body, and the length of both."""
    kind = record.kind.encode()
    head = _HEAD.pack(record.seq, record.at, len(kind)) + kind
    length, crc = len(head) + record.size, zlib.crc32(head)
    for part in (record.first, *record.rest):
        crc = zlib.crc32(part, crc)
    return _SUM.pack(crc, length) + head, _SUM.size + length


def _read(data: bytes, last_seq: int) -> list[Record]:
    """Those that continue the journal. Behind them there may be older ones, and one that was not written whole."""
    found: list[Record] = []
    start = 0
    while start + _SUM.size + _HEAD.size <= len(data):
        crc, length = _SUM.unpack_from(data, start)
        content = data[start + _SUM.size : start + _SUM.size + length]
        if len(content) < _HEAD.size or zlib.crc32(content) != crc:
            break
        seq, at, kind_length = _HEAD.unpack_from(content)
        body_at = _HEAD.size + kind_length
        if seq == last_seq + len(found) + 1:
            found.append(Record(seq, at, content[_HEAD.size : body_at].decode(), content[body_at:]))
        start += _SUM.size + length
    return found
