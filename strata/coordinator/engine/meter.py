"""The coordinator's own figures, measured over a sliding window: what was not measured is None, never a constant."""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from strata.clock import Clock
from strata.types.checkpoints import throughput_of

__all__ = ["BARRIER_BOUNDS_MS", "Meter"]

BARRIER_BOUNDS_MS = (0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0)
_RARE_S = 600.0  # checkpoints come minutes apart


class _Window:
    """Timed values of the last `seconds`, at most `limit` of them."""

    def __init__(self, clock: Clock, seconds: float, limit: int = 10_000) -> None:
        self._clock = clock
        self._seconds = seconds
        self._values: deque[tuple[float, float]] = deque(maxlen=limit)

    def add(self, value: float) -> None:
        self._values.append((self._clock.monotonic(), value))

    def values(self) -> list[float]:
        oldest = self._clock.monotonic() - self._seconds
        while self._values and self._values[0][0] < oldest:
            self._values.popleft()
        return [value for _, value in self._values]

    def p99(self) -> float | None:
        ordered = sorted(self.values())
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else None


class Meter:
    """Counts and times what the coordinator does. Every reading covers the last `window_s` seconds."""

    def __init__(self, clock: Clock, window_s: float = 60.0) -> None:
        self.window_s = window_s
        self._clock = clock
        self._started = clock.monotonic()
        self._per_second: deque[list[int]] = deque([[0, 0]])  # the second, and how many in it
        self.requests: Counter[str] = Counter()
        self._barriers = _Window(clock, window_s)
        self._waits = _Window(clock, window_s)
        self._commits = _Window(clock, window_s)
        self._dealing_ms: float | None = None
        self._checkpoints = _Window(clock, _RARE_S)
        self.barrier_buckets = [0] * (len(BARRIER_BOUNDS_MS) + 1)
        self.barrier_sum_ms = 0.0
        self.loop_lag_ms = 0.0

    def count(self, method: str, number: int = 1) -> None:
        """One request, or a batch of them, was handled."""
        self.requests[method] += number
        second = int(self._clock.monotonic())
        newest = self._per_second[-1]
        if newest[0] == second:
            newest[1] += number
        else:
            self._per_second.append([second, number])
            while self._per_second[0][0] < second - self.window_s:
                self._per_second.popleft()

    def barrier(self, latency_ms: float, gathering_ms: float) -> None:
        """A barrier was released: how long it took from the last arrival to the release, and before that from the first
        arrival to the last. The wait is both together, so it is never the shorter one."""
        self._barriers.add(latency_ms)
        self._waits.add(latency_ms + gathering_ms)
        self.barrier_buckets[bisect_left(BARRIER_BOUNDS_MS, latency_ms)] += 1
        self.barrier_sum_ms += latency_ms

    @contextmanager
    def dealing(self) -> Iterator[None]:
        """Times a dealing of shards, and nothing else."""
        started = self._clock.monotonic()
        yield
        self._dealing_ms = (self._clock.monotonic() - started) * 1e3

    def commits(self, seconds: Iterable[float]) -> None:
        for value in seconds:
            self._commits.add(value * 1e3)

    def checkpoint(self, size_bytes: int, duration_s: float | None) -> None:
        rate = throughput_of(size_bytes, duration_s)
        if rate is not None:
            self._checkpoints.add(rate)

    @property
    def uptime_s(self) -> float:
        return self._clock.monotonic() - self._started

    def requests_per_s(self) -> float | None:
        """Over the last ten full seconds, or as many as there were."""
        now = self._clock.monotonic()
        span = min(10.0, self.uptime_s)
        if span < 1.0:
            return None
        recent = sum(number for second, number in self._per_second if second >= int(now - span))
        return recent / span

    def barrier_latency_p99_ms(self) -> float | None:
        return self._barriers.p99()

    def barrier_wait_p99_ms(self) -> float | None:
        return self._waits.p99()

    def shard_assignment_ms(self) -> float | None:
        """What the last dealing took; None when there was none yet."""
        return self._dealing_ms

    def journal_commit_p99_ms(self) -> float | None:
        return self._commits.p99()

    def checkpoint_mb_per_s(self) -> float | None:
        values = self._checkpoints.values()
        return sum(values) / len(values) if values else None
