"""Whether the embedded engine stands still. It was seen to hang in the middle of a plain read: its threads waited for
each other, the question was never answered, and who had asked it waited for good. It is killed then: what it has not
got is in the spool, and the next one opens the same folder.
"""

import math
from collections import deque
from pathlib import Path

__all__ = ["Standstill", "busy_s"]

_STILL_S = 15.0
_STILL_SHARE = 0.25  # of that time: what comes in and goes out beside it takes less, a question that is worked on more
_READ_BYTES_PER_S = 250e3  # from a disk that others keep busy
_LONGEST_S = 300.0
_GAP_S = 10.0  # between two looks: we were stopped ourselves, and it perhaps too


class Standstill:
    """Looked at every few seconds while one process lives."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # when, and how busy it had been until then
        self._began = -math.inf

    def look(self, asked_at: float | None, read_at: float | None, busy_s: float, now: float) -> str | None:
        """Why it must be ended; None while it may answer. `asked_at` is when the oldest request that waits was made,
        `read_at` that of those that read: who writes may wait for the disk without doing anything."""
        if self._seen and now - self._seen[-1][0] > _GAP_S:
            self._seen.clear()
            self._began = now
        self._seen.append((now, busy_s))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _STILL_S:
            self._seen.popleft()
        since, before_s = self._seen[0]
        reads_s, waits_s = self._waits_s(read_at, now), self._waits_s(asked_at, now)
        if min(reads_s, now - since) >= _STILL_S and busy_s - before_s < _STILL_S * _STILL_SHARE:
            return f"it stands still, with a question that waits for {reads_s:.0f} s"
        if waits_s >= _LONGEST_S:
            return f"a request has had no answer for {waits_s:.0f} s"
        return None

    def _waits_s(self, at: float | None, now: float) -> float:
        return now - max(at, self._began) if at is not None else 0.0


def busy_s(pid: int) -> float:
    """For how long its threads have run, waited for a processor, or read from a disk: one that gets no processor is not
    standing still. NaN where the system does not say."""
    folder, total = Path(f"/proc/{pid}"), 0
    try:
        for thread in (folder / "task").iterdir():
            ran, waited, _ = (thread / "schedstat").read_text().split()
            total += int(ran) + int(waited)
        counts = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
        return total / 1e9 + int(counts["read_bytes"]) / _READ_BYTES_PER_S
    except (OSError, ValueError, KeyError):
        return math.nan
