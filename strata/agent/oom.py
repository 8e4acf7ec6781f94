"""Whether the kernel has killed for want of memory in the last seconds: it counts such kills, but tells no parent."""

import signal
from collections import deque
from pathlib import Path

__all__ = ["OomWatch"]

_COUNTERS = Path("/proc/vmstat")
_NAME = "oom_kill "
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # itself, or the program of a shell


class OomWatch:
    """`look` is called every few seconds. A SIGKILL that nobody here sent, and the count risen since the last looks, is
    a kill for want of memory."""

    def __init__(self, counters: Path = _COUNTERS) -> None:
        self._counters = counters
        self._seen: deque[int | None] = deque(maxlen=2)  # a look may fall between a kill and its report
        self.look()

    def look(self) -> None:
        self._seen.append(self._count())

    def struck(self, exit_code: int | None) -> bool:
        now, before = self._count(), self._seen[0]
        return exit_code in _KILLED and now is not None and before is not None and now > before

    def _count(self) -> int | None:
        try:
            text = self._counters.read_text()
        except OSError:  # other systems
            return None
        found = [line for line in text.splitlines() if line.startswith(_NAME)]
        return int(found[0].removeprefix(_NAME)) if found else None
