"""Reads ahead in threads, in the order of need, with at most `budget_bytes` finished or under way.

With no threads everything is read when it is asked for. `get` raises the error of a failed read; a thread never does.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["Prefetcher"]

Key = TypeVar("Key")
Result = TypeVar("Result")


class Prefetcher(Generic[Key, Result]):
    """`schedule` yields (key, estimated bytes) in the order of need, and `get` must be called in that order.

    The budget bounds what is ahead of the consumer; one item beyond it is always allowed, or nothing could ever start.
    """

    def __init__(
        self,
        schedule: Iterable[tuple[Key, int]],
        load: Callable[[Key], Result],
        num_threads: int,
        budget_bytes: int,
    ) -> None:
        self._schedule: Iterator[tuple[Key, int]] = iter(schedule)
        self._load = load
        self._budget = budget_bytes
        self._pool = (
            ThreadPoolExecutor(max_workers=num_threads, thread_name_prefix="strata-read") if num_threads else None
        )
        self._waiting: tuple[Key, int] | None = None
        self._ahead: deque[tuple[Key, int, Future[Result]]] = deque()
        self.ahead_bytes = 0
        self.threaded = num_threads > 0

    def soon(self, action: Callable[[], object]) -> None:
        """Runs it in one of the threads, before what is read ahead from now on. It must not raise."""
        assert self._pool is not None, "there are no threads"
        self._pool.submit(action)

    def start(self) -> None:
        """Begins to read ahead, as the first `get` does."""
        self._fill()

    def get(self, key: Key) -> Result:
        """The next item of the schedule; blocks until it is read."""
        self._fill()
        if self._pool is None:
            expected, _ = next(self._schedule)
            assert expected == key, f"{key} was asked for, {expected} comes next"
            return self._load(key)
        expected, size, future = self._ahead.popleft()
        assert expected == key, f"{key} was asked for, {expected} comes next"
        result = future.result()
        self.ahead_bytes -= size
        self._fill()
        return result

    def close(self) -> None:
        """Drops what was read ahead; waits for reads that have started."""
        for _, _, future in self._ahead:
            future.cancel()
        self._ahead.clear()
        self.ahead_bytes = 0
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _fill(self) -> None:
        while self._pool is not None:
            if self._waiting is None:
                self._waiting = next(self._schedule, None)
            if self._waiting is None:
                return
            key, size = self._waiting
            if self._ahead and self.ahead_bytes + size > self._budget:
                return
            self._waiting = None
            self.ahead_bytes += size
            self._ahead.append((key, size, self._pool.submit(self._load, key)))
