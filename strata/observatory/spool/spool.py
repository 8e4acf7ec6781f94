"""A bounded journal on disk between "acknowledged" and "in the store": appended with one sync per group of batches,
read in order, forgotten once stored. Batch ids outlive their bytes, so that a late retry is still recognised. Damaged
bytes cost the batch they belong to and no other; they are counted and told.
"""

import contextlib
import json
import logging
import os
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from strata.errors import Busy, StorageFull
from strata.lockfile import FolderLock
from strata.observatory.spool.segment import Gap, Segment, SpooledBatch, pack_record

__all__ = ["Damage", "Piece", "Progress", "Spool"]

_log = logging.getLogger(__name__)
_SEGMENT_BYTES = 32 << 20
_MAX_IDS = 200_000
_NO_ID = bytes(16)


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole records in order, and the offset up to which everything was read; damaged bytes before it are left out."""

    records: list[SpooledBatch]
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the store has: everything before `consumed`, and perhaps all up to `pending`, never a part of it."""

    consumed: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What was acknowledged and can be read no more, since the folder was made."""

    places: int = 0
    num_bytes: int = 0

    def __add__(self, gaps: "list[Gap]") -> "Damage":
        more = sum(gap.end - gap.start for gap in gaps)
        return Damage(places=self.places + len(gaps), num_bytes=self.num_bytes + more)


def _ignore(what: str, why: str) -> None:
    """For those who only want the log."""


class Spool:
    """Segment files named by their first offset. Append and sync run in a worker thread, one call at a time.
    `on_damage(what, why)` is told of each damaged place once."""

    def __init__(
        self,
        folder: Path,
        max_bytes: int = 4 << 30,
        segment_bytes: int = _SEGMENT_BYTES,
        on_damage: Callable[[str, str], None] = _ignore,
    ) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._on_damage = on_damage
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._file: int | None = None
        self._segments: list[Segment] = []
        self._digests: dict[int, bytearray] = {}  # of each segment, for the day it is trimmed
        self._gaps: dict[int, Gap] = {}  # damage that the store's writer has not passed yet
        self._lost = Damage()
        self._lock = FolderLock(folder, "observatory")
        self.spool_id = ""
        self.end = 0
        self.progress = Progress()

    @property
    def backlog_bytes(self) -> int:
        return self.end - self.progress.consumed

    @property
    def damage(self) -> Damage:
        return self._lost + list(self._gaps.values())

    def open(self) -> None:
        """Takes the folder, cuts a torn tail, and remembers every batch id that is still on disk."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock.acquire()
        self._segments = Segment.find_all(self.folder)
        self._load_state()
        for file in self._id_files():
            data = file.read_bytes()
            for start in range(0, len(data) - 15, 16):
                self._remember(data[start : start + 16])
        self.end = self.progress.consumed
        clean: Segment | None = None
        for number, segment in enumerate(self._segments):
            following = self._segments[number + 1].start if number + 1 < len(self._segments) else None
            clean = segment if self._scan(segment, following) else None
        self._drop_empty()
        # When everything is stored, a new segment: the old one, up to 32 MB, can go.
        if clean in self._segments and self.progress.consumed < self.end:
            self._open_segment(self._segments.pop())
        else:
            self._open_segment(Segment(self.folder, self.end))
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
            record = pack_record(end, digest, payload)
            pieces += record
            end += sum(map(len, record))
            ends.append(end)
        self._write(b"".join(pieces))
        current = self._segments[-1].start
        for digest, _ in batches:
            self._remember(digest)
            self._digests[current] += digest
        self.end = end
        if self.end - current >= self._segment_bytes:
            with _explained(self.folder, suppress=True):  # what was appended is safe; this one grows on meanwhile
                self._open_segment(Segment(self.folder, self.end))
        return ends

    def read(self, start: int, *, limit: int, max_bytes: int) -> Piece:
        """From `start` up to offset `limit`: at least one whole record when there is one, then until `max_bytes`."""
        records: list[SpooledBatch] = []
        size, at = 0, start
        for found in self._walk(start, limit):
            if isinstance(found, Gap):
                self._note(found)
            else:
                records.append(found)
                size += found.end - at
            at = found.end
            if size >= max_bytes:
                break
        return Piece(records, at)

    def save(self, progress: Progress) -> None:
        """Atomic and synced: after a crash the store's writer knows exactly which records may be in already."""
        passed = [gap for gap in self._gaps.values() if gap.end <= progress.consumed]
        lost = self._lost + passed
        state = {"spool_id": self.spool_id, **asdict(progress), "damage": asdict(lost)}
        with _explained(self.folder):
            _replace(self.folder / "state.json", json.dumps({**state, "crc": _crc(state)}).encode())
        self.progress, self._lost = progress, lost
        for gap in passed:
            del self._gaps[gap.start]

    def trim(self) -> None:
        """Drops segments that are stored completely; their batch ids stay for a while in small files."""
        while len(self._segments) > 1 and self._segments[1].start <= self.progress.consumed:
            segment = self._segments[0]
            ids = self.folder / f"{segment.start:020d}.ids"
            with _explained(self.folder, suppress=True):
                ids.write_bytes(self._digests[segment.start])
            segment.path.unlink(missing_ok=True)
            with _explained(self.folder, suppress=True):  # on a full disk there is room for them only now
                if not ids.exists() or ids.stat().st_size < len(self._digests[segment.start]):
                    ids.write_bytes(self._digests[segment.start])
            del self._segments[0], self._digests[segment.start]
        kept = 0
        for file in reversed(self._id_files()):
            kept += file.stat().st_size // 16
            if kept > _MAX_IDS:
                file.unlink()

    def _walk(self, at: int, limit: int) -> Iterator[SpooledBatch | Gap]:
        """All of [at, limit) in order; what is not there at all is a gap, too."""
        segments = list(self._segments)
        for number, segment in enumerate(segments):
            until = min(limit, segments[number + 1].start) if number + 1 < len(segments) else limit
            if at >= until:
                continue
            if at < segment.start:
                missing = Gap(at, min(segment.start, until), torn=False)
                yield missing
                at = missing.end
            for found in segment.read(at):
                cut = Gap(found.start, min(found.end, until), torn=False) if isinstance(found, Gap) else found
                yield cut
                at = cut.end
                if at >= until:
                    break
            else:
                yield Gap(at, until, torn=False)
                at = until

    def _note(self, gap: Gap) -> None:
        if gap.end <= self.progress.consumed or gap.start in self._gaps:
            return
        self._gaps[gap.start] = gap
        why = f"{gap.end - gap.start} bytes at {gap.start} are damaged: a batch that was acknowledged is lost"
        _log.error("%s: %s; what lies behind it is kept", self.folder, why)
        self._on_damage(f"byte {gap.start}", why)

    def _write(self, data: bytes) -> None:
        assert self._file is not None, "the spool is not open"
        view, place = memoryview(data), self.end - self._segments[-1].start
        try:
            while view:
                written = os.pwrite(self._file, view, place)
                view, place = view[written:], place + written
            os.fdatasync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):  # half a record must not lie behind the last whole one
                os.ftruncate(self._file, self.end - self._segments[-1].start)
            raise _full(self.folder, error) from None

    def _remember(self, digest: bytes) -> None:
        if digest == _NO_ID:
            return
        self._seen[digest] = None
        if len(self._seen) > _MAX_IDS:
            self._seen.popitem(last=False)

    def _load_state(self) -> None:
        file = self.folder / "state.json"
        try:
            state = json.loads(file.read_bytes())
            if state.pop("crc", None) not in (None, _crc(state)):
                raise ValueError("its checksum is wrong")
            progress = Progress(consumed=state["consumed"], pending=state["pending"])
            self.spool_id, self._lost = state["spool_id"], Damage(**state.get("damage", {}))
        except FileNotFoundError:
            self.spool_id = uuid.uuid4().hex
            self.save(Progress())
        except (ValueError, KeyError, TypeError) as error:
            self._start_over(file, error)
        else:
            self.progress = progress

    def _start_over(self, file: Path, error: Exception) -> None:
        """Nobody knows any more what is stored: everything that is still here is sent again rather than lost."""
        first = self._segments[0].start if self._segments else 0
        file.replace(file.with_suffix(".damaged"))
        self.spool_id = uuid.uuid4().hex
        why = f"it cannot be read ({error}); up to {self._segment_bytes >> 20} MiB of points may be stored twice"
        _log.error("%s: %s", file, why)
        self._on_damage(file.name, why)
        self.save(Progress(consumed=first, pending=first))

    def _scan(self, segment: Segment, following: int | None) -> bool:
        """Whether it can be appended to: it is the last one and holds nothing but whole records. What a crash left at
        its end is cut off (it was never acknowledged)."""
        end = segment.start
        digests = self._digests[segment.start] = bytearray()
        clean = following is None and not segment.old
        for found in segment.read(segment.start):
            if isinstance(found, SpooledBatch):
                self._remember(found.digest)
                digests += found.digest
            elif found.torn and following is None:
                _log.warning("%s ends in half a batch, which nobody was told is safe; it is cut off", segment.path.name)
                os.truncate(segment.path, end - segment.start)
                break
            else:
                self._note(found)
                clean = False
            end = found.end
        if following is not None and end < following:
            self._note(Gap(end, following, torn=False))
        self.end = max(self.end, end)
        return clean

    def _drop_empty(self) -> None:
        for segment in [one for one in self._segments if one.path.stat().st_size == 0]:
            segment.path.unlink()
            self._segments.remove(segment)
            del self._digests[segment.start]

    def _open_segment(self, segment: Segment) -> None:
        opened = os.open(segment.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _sync_folder(self.folder)
        if self._file is not None:
            os.close(self._file)
        self._file = opened
        self._segments.append(segment)
        self._digests.setdefault(segment.start, bytearray())

    def _id_files(self) -> list[Path]:
        return sorted(self.folder.glob("*.ids"))


@contextlib.contextmanager
def _explained(folder: Path, *, suppress: bool = False) -> Iterator[None]:
    """An error of the disk as ours; `suppress`: it is only logged, because the same is tried again later."""
    try:
        yield
    except OSError as error:
        if not suppress:
            raise _full(folder, error) from None
        _log.warning("%s", _full(folder, error).message)


def _full(folder: Path, error: OSError) -> StorageFull:
    return StorageFull(
        f"metrics cannot be written to {folder}: {error.strerror}",
        hint="Free space on that disk; senders keep their points and retry.",
    )


def _replace(file: Path, data: bytes) -> None:
    staged = file.with_suffix(".tmp")
    with staged.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    staged.replace(file)


def _crc(state: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(state, sort_keys=True).encode())


def _sync_folder(folder: Path) -> None:
    """A new file is safe only when its name is."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
