"""The files of runs, beside the checkpoints: a folder or a bucket, one folder per run, each file named by its content.

A batch is acknowledged when its files are safe here, so a text never names one that is not there. A run's files go with
the run, and with the days that rows are kept; nobody counts references, because no two runs share a file.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Generator, Mapping, Set
from contextlib import contextmanager
from typing import NamedTuple

from strata.clock import Clock
from strata.config import Settings
from strata.errors import Busy, InvalidArgument, NotFound, Refused, StorageNotFound
from strata.observatory.background.part import Part
from strata.observatory.background.setaside import SetAside
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.storage.base import ObjectStore
from strata.storage.home import checkpoint_home
from strata.storage.uri import open_store
from strata.types.media import check_file_name, file_name
from strata.types.names import check_name

__all__ = ["MediaKeeper"]

_log = logging.getLogger(__name__)
_FOLDER = ".media"  # no task can be called so, and tasks keep their checkpoints beside it
_MAX_ON_THE_WAY = 64 << 20  # half of what the door holds for all batches: points get through beside media
_MAX_RUNS = 200  # whose files are known by heart
_WRITERS = 4
_SWEEP_S = 3600.0
_DAY_S = 86_400.0


class _Kept(NamedTuple):
    size: int
    written_at: float


class MediaKeeper(Part):
    """Every store is slow and may hang: none is touched on the loop."""

    def __init__(self, settings: Settings, deleted: Set[str], clock: Clock, aside: SetAside) -> None:
        self._settings = settings
        self._deleted = deleted
        self._clock = clock
        self._aside = aside
        self._opened: ObjectStore | None = None
        self._known: OrderedDict[str, dict[str, _Kept]] = OrderedDict()
        self._looking: dict[str, asyncio.Lock] = {}
        self._on_the_way = 0
        self._writers = asyncio.Semaphore(_WRITERS)

    async def keep(self, message: Batch) -> None:
        """Makes the files of these texts safe and takes them out of the message."""
        by_run: dict[str, dict[str, bytes]] = {}
        for text in message.texts:
            by_run.setdefault(text.run_id, {}).update({file.name: file.content for file in text.files})
        for run_id, files in by_run.items():
            with self._room_for(sum(map(len, files.values()))):
                await self._keep(run_id, files)
        for text in message.texts:
            del text.files[:]

    async def get(self, run_id: str, name: str) -> bytes:
        key = f"{check_name('run_id', run_id)}/{check_file_name(name)}"
        try:
            return await asyncio.to_thread(self._store.get, key)
        except StorageNotFound:
            raise NotFound(f"run {run_id!r} has no file {name}", hint="It was removed, or its days are over.") from None

    async def drop(self, run_id: str) -> None:
        """Removes the files of a run."""
        self._known.pop(run_id, None)
        await asyncio.to_thread(self._store.delete, f"{check_name('run_id', run_id)}/")

    async def _run(self) -> None:
        while True:
            with self._aside.guard("media", "files whose days are over"):
                for run_id in await asyncio.to_thread(self._sweep):
                    self._known.pop(run_id, None)
            await asyncio.sleep(_SWEEP_S)

    def _sweep(self) -> list[str]:
        """Removes files of runs that were deleted while the store was away, and those that are older than rows may be.
        Returns the runs that lost some."""
        days, swept = self._settings.retention_days, []
        oldest = self._clock.wall() - days * _DAY_S if days is not None else 0.0
        for folder in self._store.list().folders:
            run_id = folder.rstrip("/")
            gone = run_id in self._deleted
            old = [] if gone else [file for file in self._store.list(folder).objects if file.modified_at < oldest]
            for key in [folder] if gone else [file.key for file in old]:
                self._store.delete(key)
                swept.append(run_id)
            if old:
                _log.info("%d files of run %s are older than %d days and were removed", len(old), run_id, days)
        return swept

    async def _keep(self, run_id: str, files: Mapping[str, bytes]) -> None:
        known = await self._files_of(run_id)
        # Of what would soon be swept away though it is logged again, a new copy is written.
        recent = self._clock.wall() - _DAY_S if self._settings.retention_days else 0.0
        fresh = [name for name in files if name not in known or known[name].written_at < recent]
        more = sum(len(files[name]) for name in fresh if name not in known)
        total, limit = sum(file.size for file in known.values()) + more, self._settings.media_run_bytes
        if more and total > limit:
            raise Refused(
                f"the files of run {run_id!r} would have {total:,} bytes, {limit:,} are kept",
                hint="Log fewer or smaller media, or raise STRATA_MEDIA_RUN_BYTES.",
            )
        await asyncio.gather(*(self._write(run_id, name, files[name]) for name in fresh))
        known.update({name: _Kept(len(files[name]), self._clock.wall()) for name in fresh})

    async def _write(self, run_id: str, name: str, content: bytes) -> None:
        async with self._writers:
            await asyncio.to_thread(_put, self._store, run_id, name, content)

    async def _files_of(self, run_id: str) -> dict[str, _Kept]:
        """By name with their sizes: what the store lists, once, and what came since."""
        async with self._looking.setdefault(run_id, asyncio.Lock()):
            if run_id not in self._known:
                found = await asyncio.to_thread(self._store.list, f"{run_id}/")
                self._known[run_id] = {
                    file.key.rpartition("/")[2]: _Kept(file.size, file.modified_at) for file in found.objects
                }
            self._known.move_to_end(run_id)
            while len(self._known) > _MAX_RUNS:
                gone, _ = self._known.popitem(last=False)
                self._looking.pop(gone, None)
            return self._known[run_id]

    @contextmanager
    def _room_for(self, size: int) -> Generator[None]:
        """Raises Busy when much waits for the store already; the sender tries again."""
        if self._on_the_way and self._on_the_way + size > _MAX_ON_THE_WAY:
            raise Busy(f"media of {self._on_the_way:,} bytes are on their way to the store", hint="Send it again.")
        self._on_the_way += size
        try:
            yield
        finally:
            self._on_the_way -= size

    @property
    def _store(self) -> ObjectStore:
        if self._opened is None:
            self._opened = open_store(f"{checkpoint_home(self._settings)}/{_FOLDER}")
        return self._opened


def _put(store: ObjectStore, run_id: str, name: str, content: bytes) -> None:
    if file_name(content, name.rpartition(".")[2]) != name:
        raise InvalidArgument(f"the bytes of {name} are others than its name says", hint="Send it again.")
    store.put(f"{run_id}/{name}", content)
