"""The thread behind a CheckpointManager: takes staged states, saves them one after the other, then tidies up."""

import json
import logging
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor

from strata.checkpoint import faults
from strata.checkpoint.catalog import Catalog
from strata.checkpoint.commit import CommitCoordinator
from strata.checkpoint.copying import SlicedCopy
from strata.checkpoint.handle import SaveHandle
from strata.checkpoint.layout import FORMAT_KEY
from strata.checkpoint.manifest import FORMAT
from strata.checkpoint.options import CheckpointSettings
from strata.checkpoint.retention import RetentionPolicy
from strata.checkpoint.saver import SaveJob, Saver
from strata.checkpoint.scrub import Scrubber
from strata.checkpoint.staging import StagingPool
from strata.errors import Busy, CheckpointNotFound, CorruptCheckpoint, InvalidArgument, StorageError
from strata.storage.base import ObjectStore, honours_create
from strata.types.checkpoints import CheckpointInfo

__all__ = ["SavePipeline"]

_log = logging.getLogger(__name__)


class SavePipeline:
    """One save at a time, in the order of the calls. The staging pool bounds the memory; errors are kept until seen."""

    def __init__(
        self,
        store: ObjectStore,
        catalog: Catalog,
        coordinator: CommitCoordinator,
        settings: CheckpointSettings,
        policy: RetentionPolicy,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._settings = settings
        self._policy = policy
        self._grace_s = 2 * settings.deadline_s
        self._saver = Saver(store, coordinator, settings)
        self._scrubber = Scrubber(
            lambda step, progress: catalog.verify(step, progress=progress, paced=True), settings.scrub_mb_s
        )
        self._pool = StagingPool(settings.staging_buffers, settings.memory_budget_bytes)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-save")
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-copy")  # its thread comes when needed
        self._pending: list[SaveHandle] = []
        self._tidying: Future[None] | None = None
        self._sweep_at: float | None = 0.0  # due with the first commit: what a dead process left behind
        self._closed = False
        self.conditional_writes: bool | None = None

    def submit(self, job: SaveJob) -> SaveHandle:
        """Saves from the arrays' own memory: they must not change before the handle is done."""
        job.buffers = job.image.views()
        return self._enqueue(job, None)

    def submit_staged(self, job: SaveJob, later: Collection[str] = ()) -> SaveHandle:
        """Copies first, so that the arrays may change on return, but those of `later`, which may when they are staged;
        `on_busy` says what happens when the staging memory is full. Immutable bytes are not copied: they take a place,
        so that saves do not pile up, but no memory."""
        if self._closed:
            raise InvalidArgument("this CheckpointManager is closed")
        try:
            size = 0 if job.image.immutable else job.image.size
            buffer = self._pool.take(size, wait=self._settings.on_busy == "block", touch=not later)
        except Busy:
            if self._settings.on_busy == "skip":
                _log.warning("step %d is not saved: earlier saves are still being written", job.step)
                return SaveHandle.skipped(job)
            raise
        try:
            if job.image.immutable:
                job.buffers = job.image.views()
            else:
                job.copy = SlicedCopy(job.image, buffer, later)
                job.buffers = (buffer,)
        except BaseException:
            self._pool.give(buffer)
            raise
        if job.copy is None or job.copy.done:
            faults.reach("staged")
        else:
            self._copier.submit(job.copy.run)
        return self._enqueue(job, buffer)

    def stage(self) -> None:
        """Returns when the arrays of all saves so far may change."""
        for handle in self._pending:
            handle.stage()

    def wait(self, timeout: float | None) -> None:
        for handle in self._pending[:]:
            handle.join(timeout)
        if self._tidying is not None:
            self._tidying.result(timeout)
        self.raise_failure()

    def raise_failure(self) -> None:
        """The first failure that nobody has seen: raised, or with on_error='warn' only logged."""
        for handle in self._pending:
            error = handle.take_failure()
            if error is None:
                continue
            if self._settings.on_error == "raise":
                raise error
            _log.error("the save of step %d failed: %s", handle.step, error)

    def close(self) -> None:
        self._closed = True
        self._copier.shutdown(wait=True)
        self._worker.shutdown(wait=True)
        self._scrubber.close()
        self._saver.close()
        self._pool.close()
        self.raise_failure()

    def _enqueue(self, job: SaveJob, buffer: memoryview | None) -> SaveHandle:
        if self._closed:
            raise InvalidArgument("this CheckpointManager is closed")
        handle = SaveHandle(job, self._worker.submit(self._run, job, buffer))
        self._pending = [each for each in self._pending if not each.settled]
        self._pending.append(handle)
        return handle

    def _run(self, job: SaveJob, buffer: memoryview | None) -> CheckpointInfo:
        try:
            self._prepare()
            self._catalog.forget_removal(job.step)
            job.overwrite = job.overwrite or self._is_suspect(job.step)
            with self._scrubber.held():
                info, committer = self._saver.run(job, self._observe)
        except BaseException as error:
            failed = self._saver.failed(job, error)
            if failed is not None:
                self._observe(failed)
            self._sweep_at = self._settings.clock.monotonic() + self._grace_s
            # Now, too: a process that ends without another call would never hear of it.
            _log.error("the save of step %d failed: %s", job.step, error)
            raise
        finally:
            job.buffers = ()
            if job.copy is not None:
                job.copy.end()
            if buffer is not None:
                self._pool.give(buffer)
        self._observe(info)
        _log.debug(
            "step %d saved to %s: %.2f MB in %.2f s", info.step, info.path, info.size_bytes / 1e6, info.duration_s
        )
        if committer:
            self._scrubber.look_at(info.step)
            try:
                # Behind the result: nobody waits for the deletion of old files.
                self._tidying = self._worker.submit(self._tidy, job.step)
            except RuntimeError:  # close() has begun, so this is the last thing that the thread does
                self._tidy(job.step)
        return info

    def _prepare(self) -> None:
        """Once, before the first save: marks the root as ours and learns whether the store creates keys only once."""
        if self.conditional_writes is not None:
            return
        honoured = honours_create(self._store, FORMAT_KEY, json.dumps({"format": FORMAT}).encode())
        self._saver.create_once = self.conditional_writes = honoured
        if not honoured:
            _log.warning(
                "%s ignores conditional writes: commits rely on the coordinator letting only one writer commit a step",
                self._store.uri,
            )

    def _is_suspect(self, step: int) -> bool:
        """A step whose bytes were found damaged by this process may be saved again in its place."""
        try:
            check = self._catalog.check_of(self._catalog.commit_of(step))
        except (CheckpointNotFound, CorruptCheckpoint):
            return False
        return check is not None and bool(check.damage)

    def _tidy(self, step: int) -> None:
        """After a commit. A failure here must not fail the save: it is said, and tried again after the next one."""
        now = self._settings.clock.monotonic()
        try:
            self._catalog.retire(step, self._policy)
            if self._sweep_at is not None and now >= self._sweep_at:
                young = self._catalog.sweep(running=self._saver.running, grace_s=self._grace_s)
                self._sweep_at = now + self._grace_s if young else None
        except StorageError as error:
            _log.warning("old checkpoints could not be removed, will try again: %s", error)

    def _observe(self, info: CheckpointInfo) -> None:
        if self._settings.observer is not None:
            try:
                self._settings.observer(info)
            except Exception:
                _log.exception("the observer of checkpoints failed")
