"""Batches as files in a folder: what cannot be sent now, and what a kill -9 must not take. Oldest first, bounded.

Several processes may use one folder: what one of them left there is sent by whoever finds it. A batch's id makes it
count once.
"""

import logging
import time
from collections import deque
from pathlib import Path

from google.protobuf.message import DecodeError

from strata.protocol.generated import telemetry_pb2 as tm

__all__ = ["Spill", "offline_folder", "offline_folders"]

_log = logging.getLogger(__name__)
_SUFFIX = ".batch"


def offline_folder(data_dir: Path, run_id: str) -> Path:
    """Where a run without a server keeps its batches until `strata sync`, rank by rank."""
    return data_dir / "offline" / run_id


def offline_folders(data_dir: Path) -> list[Path]:
    """Those of all ranks of all runs that have something there."""
    return sorted({path.parent for path in (data_dir / "offline").glob(f"*/rank-*/*{_SUFFIX}")})


class Spill:
    """Not bound to a thread, and not locked: its owner does that."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._files: deque[tuple[Path, int]] = deque()
        self._bytes = 0
        self._looked_at = -1
        self._told = ""
        self.look()

    @property
    def empty(self) -> bool:
        return not self._files

    def look(self) -> None:
        """Takes notice of what others have put into the folder since the last look, a forked child for example."""
        try:
            changed_at = self._folder.stat().st_mtime_ns
            if changed_at == self._looked_at:
                return
            found = sorted(path for path in self._folder.iterdir() if path.suffix == _SUFFIX)
        except OSError:
            return  # nobody has put anything anywhere
        self._looked_at = changed_at
        self._files = deque((path, size) for path in found if (size := _size_of(path)) is not None)
        self._bytes = sum(size for _, size in self._files)

    def put(self, batch: tm.Batch) -> Path | None:
        """The batch's file; None when there is no room for it."""
        data = batch.SerializeToString()
        if self._bytes + len(data) > self._limit:
            self._complain(f"it holds {self._bytes} bytes, its limit is {self._limit}")
            return None
        target = self._folder / f"{time.time_ns():020d}-{batch.batch_id}{_SUFFIX}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            staged = target.with_suffix(".part")
            staged.write_bytes(data)
            staged.replace(target)
        except OSError as error:
            self._complain(error.strerror or str(error))
            return None
        self._told = ""
        self._files.append((target, len(data)))
        self._bytes += len(data)
        return target

    def oldest(self) -> Path | None:
        return self._files[0][0] if self._files else None

    def read(self, path: Path) -> tm.Batch | None:
        """None for a file that is gone or broken: it cannot be sent, ever."""
        try:
            return tm.Batch.FromString(path.read_bytes())
        except FileNotFoundError:
            return None  # another process has sent it
        except (OSError, DecodeError) as error:
            _log.warning("%s is damaged and is not sent: %s", path, error)
            return None

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        for index, (known, size) in enumerate(self._files):
            if known == path:
                del self._files[index]
                self._bytes -= size
                return

    def _complain(self, why: str) -> None:
        """Once per trouble: every later batch would say the same."""
        if not self._told:
            _log.warning("telemetry cannot be kept in %s: %s; what does not fit is lost and counted", self._folder, why)
            self._told = why


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
