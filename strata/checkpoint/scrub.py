"""Reads the newest checkpoint back while the job trains, so that damage is known before somebody needs it.

It runs in the rank that committed it, which can read the store: not in the coordinator, which never touches bytes, nor
in the observatory. One thread, one chunk at a time, at a bounded rate, and never beside a save.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strata.checkpoint.reader import Progress
from strata.errors import CheckpointNotFound, CorruptCheckpoint, StrataError

__all__ = ["Scrubber"]

_log = logging.getLogger(__name__)


class _Closed(Exception):
    """Ends a check half way; nothing is then known about the checkpoint."""


class Scrubber:
    """`check` reads one step and calls back after every chunk. Its thread starts with the first checkpoint."""

    def __init__(self, check: Callable[[int, Progress], object], mb_s: float) -> None:
        self._check = check
        self._bytes_per_s = mb_s * 1e6
        self._changed = threading.Condition()
        self._newest: int | None = None
        self._saves = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    def look_at(self, step: int) -> None:
        """Checks this step soon, instead of an older one that has not been begun."""
        if not self._bytes_per_s:
            return
        with self._changed:
            self._newest = step
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkpoint-scrub", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        """While inside, nothing is read: a save has the store to itself."""
        with self._changed:
            self._saves += 1
        try:
            yield
        finally:
            with self._changed:
                self._saves -= 1
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or (self._newest is not None and not self._saves))
                step, self._newest = self._newest, None
                if self._closed or step is None:
                    return
            try:
                self._look(step)
            except _Closed:
                return
            except CorruptCheckpoint as error:
                _log.error("%s; a recovery would go to the checkpoint before it", error)
            except CheckpointNotFound:
                _log.debug("step %d was removed before it was checked", step)
            except StrataError as error:
                _log.warning("step %d could not be checked: %s", step, error)

    def _look(self, step: int) -> None:
        seen = 0

        def pause(done: int, _: int) -> None:
            nonlocal seen
            with self._changed:
                self._changed.wait_for(lambda: self._closed, (done - seen) / self._bytes_per_s)
                self._changed.wait_for(lambda: self._closed or not self._saves)
                if self._closed:
                    raise _Closed
            seen = done

        self._check(step, pause)
        _log.debug("step %d was read back and is good", step)
