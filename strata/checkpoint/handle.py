"""A save that runs behind the training loop, as its caller sees it."""

from concurrent.futures import Future
from typing import Self

from strata.checkpoint.saver import SaveJob, SaveProgress
from strata.errors import DeadlineExceeded
from strata.types.checkpoints import CheckpointInfo

__all__ = ["SaveHandle"]


class SaveHandle:
    """`staged` says that the arrays may change and `stage` makes it so, `done` says that the save has ended, `result`
    waits for its outcome."""

    def __init__(self, job: SaveJob, future: Future[CheckpointInfo | None]) -> None:
        self.step = job.step
        self._job = job
        self._future = future
        self._seen = False

    @classmethod
    def skipped(cls, job: SaveJob) -> Self:
        """The handle of a save that on_busy='skip' left out: done at once, with no result."""
        future: Future[CheckpointInfo | None] = Future()
        future.set_result(None)
        job.phase = "skipped"
        return cls(job, future)

    @property
    def staged(self) -> bool:
        """The state is copied: from the moment save_async returns, unless it was given `until`."""
        return self._job.copy is None or self._job.copy.done

    def stage(self) -> None:
        """Returns when the arrays may change: what is not copied yet is copied now. Costs nothing afterwards."""
        if self._job.copy is not None:
            self._job.copy.release()

    @property
    def done(self) -> bool:
        return self._future.done()

    @property
    def progress(self) -> SaveProgress:
        return self._job.progress

    def result(self, timeout: float | None = None) -> CheckpointInfo | None:
        """The committed checkpoint, or None when the save was skipped. Raises what went wrong."""
        self.join(timeout)
        self._seen = True
        return self._future.result()

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end and raises nothing."""
        try:
            self._future.exception(timeout)
        except TimeoutError as error:
            phase = self.progress.phase
            raise DeadlineExceeded(f"step {self.step} is still {phase} after {timeout} s") from error

    @property
    def settled(self) -> bool:
        """The save has ended, and its error, if any, has been seen."""
        return self._future.done() and (self._seen or self._future.exception() is None)

    def take_failure(self) -> BaseException | None:
        """The error of a failed save, the first time it is asked for; None otherwise."""
        if self._seen or not self._future.done():
            return None
        self._seen = True
        return self._future.exception()
