"""A bounded journal on disk between "acknowledged" and "in the store": appended with one sync per group of batches,
read in order, forgotten once stored. Batch ids outlive their bytes, so that a late retry is still recognised.
"""

import contextlib
import json
import logging
import os
import struct
import uuid
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from strata.errors import Busy, StorageError, StorageFull
from strata.lockfile import FolderLock

__all__ = ["Progress", "Record", "Spool"]

_log = logging.getLogger(__name__)
_HEADER = struct.Struct("<II16s")  # payload length, crc of id + payload, digest of the batch id
_SEGMENT_BYTES = 32 << 20
_MAX_IDS = 200_000
_NO_ID = bytes(16)


@dataclass(frozen=True, slots=True)
class Record:
    """One batch as it lies in the journal; `end` is the offset of the next one."""

    end: int
    digest: bytes
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the store has: everything before `consumed`, and perhaps all up to `pending`, never a part of it."""

    consumed: int = 0
    pending: int = 0


class Spool:
    """Segment files named by their first offset. Append and sync run in a worker thread, one call at a time."""

    def __init__(self, folder: Path, max_bytes: int = 4 << 30) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._file: int | None = None
        self._starts: list[int] = []
        self._digests: dict[int, bytearray] = {}  # of each segment, for the day it is trimmed
        self._segment_start = 0
        self._lock = FolderLock(folder, "observatory")
        self.spool_id = ""
        self.end = 0
        self.progress = Progress()

    @property
    def backlog_bytes(self) -> int:
        return self.end - self.progress.consumed

    def open(self) -> None:
        """Takes the folder, cuts a torn tail, and remembers every batch id that is still on disk."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        self._load_state()
        for file in self._id_files():
            data = file.read_bytes()
            for start in range(0, len(data) - 15, 16):
                self._remember(data[start : start + 16])
        self._starts = sorted(int(path.stem) for path in self._folder.glob("*.spool"))
        self.end = self.progress.consumed
        for start in self._starts:
            self.end = max(self.end, self._scan(start))
        # When everything is stored, a new segment: the old one, up to 32 MB, can go.
        done = self.progress.consumed >= self.end
        self._open_segment(self.end if done or not self._starts else self._starts[-1])
        self.trim()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()

    @staticmethod
    def digest(batch_id: str) -> bytes:
        return blake2b(batch_id.encode(), digest_size=16).digest() if batch_id else _NO_ID

    def has(self, digest: bytes) -> bool:
        return digest != _NO_ID and digest in self._seen

    def check_room(self) -> None:
        """Raises Busy when the store has been away for so long that the disk budget is used up."""
        if self.backlog_bytes > self._max_bytes:
            raise Busy(
                f"{self.backlog_bytes >> 20} MiB wait for the metric store, {self._max_bytes >> 20} are allowed",
                hint="Bring the metric store back; senders keep their points and retry.",
            )

    def append(self, batches: list[tuple[bytes, bytes]]) -> list[int]:
        """Writes (digest, payload) pairs and syncs once. Returns each one's end offset; on return all are safe."""
        pieces, ends, end = [], [], self.end
        for digest, payload in batches:
            pieces += [_HEADER.pack(len(payload), zlib.crc32(payload, zlib.crc32(digest)), digest), payload]
            end += _HEADER.size + len(payload)
            ends.append(end)
        self._write(b"".join(pieces))
        for digest, _ in batches:
            self._remember(digest)
            self._digests[self._segment_start] += digest
        self.end = end
        if self.end - self._segment_start >= _SEGMENT_BYTES:
            self._open_segment(self.end)
        return ends

    def read(self, start: int, *, limit: int, max_bytes: int) -> list[Record]:
        """Whole records from `start` up to offset `limit`: at least one when there is one, then until `max_bytes`."""
        records: list[Record] = []
        size = 0
        starts = list(self._starts)
        for segment, following in zip(starts, [*starts[1:], limit], strict=True):
            if following <= start:
                continue
            with (self._folder / _name(segment)).open("rb") as file:
                file.seek(start - segment)
                while start < min(following, limit) and size < max_bytes:
                    record = _read_record(file, start)
                    if record is None:
                        raise StorageError(f"{file.name} is damaged at byte {start - segment}")
                    records.append(record)
                    size += record.end - start
                    start = record.end
        return records

    def save(self, progress: Progress) -> None:
        """Atomic and synced: after a crash the store's writer knows exactly which records may be in already."""
        self.progress = progress
        text = json.dumps({"spool_id": self.spool_id, "consumed": progress.consumed, "pending": progress.pending})
        staged = self._folder / "state.tmp"
        with staged.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(self._folder / "state.json")

    def trim(self) -> None:
        """Drops segments that are stored completely; their batch ids stay for a while in small files."""
        while len(self._starts) > 1 and self._starts[1] <= self.progress.consumed:
            start = self._starts[0]
            (self._folder / f"{start:020d}.ids").write_bytes(self._digests.pop(start))
            (self._folder / _name(start)).unlink()
            del self._starts[0]
        kept = 0
        for file in reversed(self._id_files()):
            kept += file.stat().st_size // 16
            if kept > _MAX_IDS:
                file.unlink()

    def _write(self, data: bytes) -> None:
        assert self._file is not None, "the spool is not open"
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
            os.fdatasync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):  # half a record must not lie in front of the next one
                os.ftruncate(self._file, self.end - self._segment_start)
            raise StorageFull(f"metrics cannot be written to {self._folder}: {error.strerror}") from None

    def _remember(self, digest: bytes) -> None:
        if digest == _NO_ID:
            return
        self._seen[digest] = None
        if len(self._seen) > _MAX_IDS:
            self._seen.popitem(last=False)

    def _load_state(self) -> None:
        try:
            state = json.loads((self._folder / "state.json").read_text())
        except FileNotFoundError:
            self.spool_id = uuid.uuid4().hex
            self.save(Progress())
            return
        self.spool_id = state["spool_id"]
        self.progress = Progress(consumed=state["consumed"], pending=state["pending"])

    def _scan(self, start: int) -> int:
        """The end of the last whole record; what a crash left behind it is cut off (it was never acknowledged)."""
        path = self._folder / _name(start)
        end = start
        digests = self._digests[start] = bytearray()
        with path.open("rb") as file:
            while (record := _read_record(file, end)) is not None:
                self._remember(record.digest)
                digests += record.digest
                end = record.end
        if path.stat().st_size > end - start:
            _log.warning("%s ends in half a batch, which nobody was told is safe; it is cut off", path.name)
            os.truncate(path, end - start)
        return end

    def _open_segment(self, start: int) -> None:
        if self._file is not None:
            os.close(self._file)
        self._segment_start = start
        if start not in self._starts:
            self._starts.append(start)
            self._digests[start] = bytearray()
        self._file = os.open(self._folder / _name(start), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _id_files(self) -> list[Path]:
        return sorted(self._folder.glob("*.ids"))


def _name(start: int) -> str:
    return f"{start:020d}.spool"


def _read_record(file: BinaryIO, start: int) -> Record | None:
    """None at the end, and for bytes that are not a whole record."""
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    size, crc, digest = _HEADER.unpack(header)
    payload = file.read(size)
    if len(payload) < size or zlib.crc32(payload, zlib.crc32(digest)) != crc:
        return None
    return Record(start + _HEADER.size + size, digest, payload)
