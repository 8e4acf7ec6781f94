"""One file of the spool: framed records, and what to do where bytes are no record any more.

Each record carries a mark and its own place, so that behind damaged bytes the next whole record is found again. Files
of earlier releases (`.spool`) have no mark: behind damage they are read on only as far as a record's length is right.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Gap", "Segment", "SpooledBatch", "pack_record"]

_MARK = b"\xf5SP2"
_HEADER = struct.Struct(
    "<4sIII16s"
)  # mark, low bits of the own offset, payload length, crc of digest + payload, digest
_OLD_HEADER = struct.Struct("<II16s")
_LOW_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class SpooledBatch:
    """One batch as it lies on the disk; `end` is the offset of the next one."""

    end: int
    digest: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that hold no whole record. `torn`: they are the beginning of one at the end of the file, as a crash in the
    middle of a write leaves it, so nobody was told that it is safe. Otherwise something that was safe is damaged."""

    start: int
    end: int
    torn: bool


def pack_record(offset: int, digest: bytes, payload: bytes) -> list[bytes]:
    """The pieces of one record that begins at `offset`."""
    crc = zlib.crc32(payload, zlib.crc32(digest))
    return [_HEADER.pack(_MARK, offset & _LOW_BITS, len(payload), crc, digest), payload]


@dataclass(frozen=True, slots=True)
class Segment:
    """A file named by the offset of its first byte."""

    folder: Path
    start: int
    old: bool = False  # written by a release without marks: read, never appended to

    @classmethod
    def find_all(cls, folder: Path) -> list["Segment"]:
        found = [cls(folder, int(path.stem), old=path.suffix == ".spool") for path in folder.glob("*.spool")]
        found += [cls(folder, int(path.stem)) for path in folder.glob("*.segment")]
        return sorted(found, key=lambda segment: segment.start)

    @property
    def path(self) -> Path:
        return self.folder / f"{self.start:020d}{'.spool' if self.old else '.segment'}"

    def read(self, offset: int) -> Iterator[SpooledBatch | Gap]:
        """Everything from `offset` to the end of the file, without holes. A file that is gone holds nothing. (It is not
        mapped into memory: a bad sector must be an error, not the signal SIGBUS.)"""
        try:
            with self.path.open("rb") as file:
                file.seek(offset - self.start)
                bytes_ = _Bytes(file.read(), offset, old=self.old)
        except FileNotFoundError:
            return
        at = 0
        while at < len(bytes_.data):
            found = bytes_.at(at)
            yield found
            at = found.end - offset


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A part of a file that begins at offset `base`; places in it count from there."""

    data: bytes
    base: int
    old: bool

    def at(self, at: int) -> SpooledBatch | Gap:
        record = self._whole(at)
        if record is not None:
            return record
        following = self._following(at)
        # A record whose length is damaged reaches to the next one: its checksum tells.
        record = None if self.old else self._whole(at, following - at - _HEADER.size)
        if record is not None:
            return record
        torn = following == len(self.data) and self._is_torn(at)
        return Gap(self.base + at, self.base + following, torn)

    def _whole(self, at: int, size: int | None = None) -> SpooledBatch | None:
        """The record at this place if its checksum is right, whatever its mark looks like."""
        header = _OLD_HEADER if self.old else _HEADER
        body = at + header.size
        if body > len(self.data):
            return None
        given, crc, digest = header.unpack_from(self.data, at)[-3:]
        end = body + (given if size is None else size)
        if not body <= end <= len(self.data):
            return None
        payload = self.data[body:end]
        if zlib.crc32(payload, zlib.crc32(digest)) != crc:
            return None
        return SpooledBatch(self.base + end, digest, payload)

    def _following(self, at: int) -> int:
        """Where the next whole record begins behind one that is not; the end of the file when there is none."""
        if self.old:
            beyond = at + _OLD_HEADER.size
            if beyond <= len(self.data):
                beyond += _OLD_HEADER.unpack_from(self.data, at)[0]
            return beyond if self._whole(beyond) is not None else len(self.data)
        while (at := self.data.find(_MARK, at + 1)) >= 0:
            if self._knows_its_place(at) and self._whole(at) is not None:
                return at
        return len(self.data)

    def _knows_its_place(self, at: int) -> bool:
        return self.data[at + 4 : at + 8] == struct.pack("<I", (self.base + at) & _LOW_BITS)

    def _is_torn(self, at: int) -> bool:
        rest = len(self.data) - at
        if not any(self.data[at:]):  # a file system may have grown the file before the bytes came
            return True
        header = _OLD_HEADER if self.old else _HEADER
        if not self.old:
            expected = _MARK + struct.pack("<I", (self.base + at) & _LOW_BITS)
            if self.data[at : at + 8] != expected[:rest]:
                return False
        return rest < header.size or header.unpack_from(self.data, at)[-3] > rest - header.size
