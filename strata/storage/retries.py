"""Repeats single requests to a bucket, with growing waits, and logs every repetition.

obstore retries silently and has no hook, so single requests are retried here. Parts of a stream are still retried
inside obstore; `watch` says when such a stream stands still and why.
"""

import contextlib
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from strata.clock import SystemClock
from strata.errors import StorageError
from strata.log_budget import LineBudget
from strata.storage.options import StorageOptions

__all__ = ["Retries", "first_line", "is_temporary"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_STALL_S = 2.0

# How obstore words temporary trouble: no answer, half an answer, an overloaded server. Refusals read otherwise.
_TEMPORARY = re.compile(
    r"HTTP error|error decoding response|body error|status code: (?:5\d\d|429)|\b(?:5\d\d|429) [A-Z]"
)


def is_temporary(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    return _TEMPORARY.search(first_line(error)) is not None


def first_line(error: BaseException) -> str:
    """obstore appends a debug dump of many lines; people need the first, without the XML."""
    return str(error).partition("\n")[0].partition(": <?xml")[0][:300]


class Retries:
    """The tries of one store. A wait doubles each time and is cut by up to a half at random, so that ranks which failed
    together do not come back together."""

    def __init__(self, uri: str, options: StorageOptions) -> None:
        self._uri = uri
        self._options = options
        self._budget: LineBudget[str] = LineBudget(SystemClock(), burst=10)

    def call(self, what: str, key: str, request: Callable[[], _T]) -> _T:
        """`request()` until it succeeds, fails for good, or the tries or the time are used up."""
        started = time.monotonic()
        tries = self._options.max_retries + 1
        for number in range(1, tries + 1):
            begun = time.monotonic()
            try:
                answer = request()
            except Exception as error:
                wait_s = min(_FIRST_WAIT_S * 2 ** (number - 1), _LONGEST_WAIT_S) * random.uniform(0.5, 1.0)  # noqa: S311  # jitter
                late = time.monotonic() + wait_s - started > self._options.retry_timeout_s
                if number == tries or late or not is_temporary(error):
                    raise
                self._say(what, key, number, tries, error, wait_s)
                time.sleep(wait_s)
            else:
                _log.debug("%s %s/%s took %.3f s", what, self._uri, key, time.monotonic() - begun)
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    def _say(self, what: str, key: str, number: int, tries: int, error: BaseException, wait_s: float) -> None:
        if self._budget.allows(what):
            text = "%s %s/%s failed, try %d of %d: %s; next try in %.1f s"
            _log.warning(text, what, self._uri, key, number, tries, first_line(error), wait_s)
        for held in self._budget.held_back():
            _log.warning("… and %d more tries of %s at %s in %.0f s", held.count, held.key, self._uri, held.seconds)

    @contextlib.contextmanager
    def watch(self, key: str, probe: Callable[[], object]) -> Iterator[Callable[[Iterable[_T]], Iterator[_T]]]:
        """Around the upload of a stream: gives a function that counts the chunks as they are pulled. While none is, and
        `probe` (one small request) fails, a warning says so."""
        watcher = _StallWatch(f"{self._uri}/{key}", probe)
        thread = threading.Thread(target=watcher.run, name="upload-watch", daemon=True)
        thread.start()
        try:
            yield watcher.pulled
        finally:
            watcher.done.set()
            thread.join()


class _StallWatch:
    """Looks at one upload until it is done."""

    def __init__(self, where: str, probe: Callable[[], object]) -> None:
        self.done = threading.Event()
        self._where = where
        self._probe = probe
        self._moved_at = time.monotonic()

    def pulled(self, chunks: Iterable[_T]) -> Iterator[_T]:
        for chunk in chunks:
            self._moved_at = time.monotonic()
            yield chunk
            self._moved_at = time.monotonic()

    def run(self) -> None:
        wait_s = _STALL_S
        while not self.done.wait(wait_s):
            still_s = time.monotonic() - self._moved_at
            if still_s < _STALL_S:
                wait_s = _STALL_S
                continue
            try:
                self._probe()
            except (StorageError, OSError, RuntimeError) as error:
                if not self.done.is_set():
                    text = "upload of %s stands still for %.0f s, its parts are tried again: %s"
                    _log.warning(text, self._where, still_s, first_line(error))
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
