"""The limits on what one connection may use. Each has its reason here; docs/adr/0010 has the measurements."""

import logging
import resource
import time
from collections import Counter
from collections.abc import Callable

from strata.grpcserver.frames import ConnectionFault, Fault

__all__ = [
    "CHATTER",
    "LINGER_S",
    "LITTLE_BYTES",
    "MAX_CALLS",
    "MAX_HEADER_BYTES",
    "MAX_HELD_BYTES",
    "MAX_UNREAD_BYTES",
    "READING_S",
    "REFUSAL",
    "RESET",
    "SETTINGS",
    "TURN_FRAMES",
    "TURN_S",
    "WAITING_BYTES",
    "WRITE_BUFFER_BYTES",
    "Allowance",
    "Complaints",
    "max_connections",
]

_log = logging.getLogger(__name__)

# How long one connection's frames keep the loop before others have their turn. A beat takes 30 µs, so a peer that
# means well is through long before.
TURN_S = 0.002
# So many it may say however long that takes: on a busy host the clock runs on while the loop waits for a processor, and
# who says a few words would stand behind those that send without end.
TURN_FRAMES = 16
# How long all connections together keep it, when a thousand peers speak at once: the rest is read in its next turns.
# docs/adr/0040 has what a ping waits at the end of 10,000 ranks.
READING_S = 0.010
# Who says no more than that is read all the same: a ping, a window, an agent's beat.
LITTLE_BYTES = 100
# Who has sent more than that is not read again before it had its turn.
WAITING_BYTES = 16 * 1024
# Calls at once. An agent has one stream, whatever its ranks; a client that sees this number in our settings waits.
MAX_CALLS = 1_000
# Messages that came and that no handler has taken yet, unfinished ones included: sixteen of the largest size.
MAX_UNREAD_BYTES = 64 << 20
# Answers that wait for a peer to open its windows. Beyond it the next one ends its call; one message of any size (the
# first state of a large cluster) always has room.
MAX_HELD_BYTES = 64 << 20
# What lies in the socket's buffer before nothing more is read from this peer: it reads first.
WRITE_BUFFER_BYTES = 1 << 20
# The headers of one call, decoded, as HPACK counts them: gRPC's own servers take 16 KB at most, too.
MAX_HEADER_BYTES = 16 * 1024
# How long a peer whose connection has ended may take to read why.
LINGER_S = 1.0

# What a connection may spend on what is not a call that somebody serves. A cheap frame (ping, priority, a window's
# update, empty DATA) costs 1: a reader of 320 MB/s sends 20,000 updates of windows in a second, nobody sends more.
_PER_S = 20_000.0
_AT_ONCE = 40_000.0
CHATTER = 1
RESET = 20  # 1,000 a second: a call was set up for nothing. All calls of a connection may be cancelled at once, twice.
REFUSAL = 20  # the same for a call that is refused
SETTINGS = 200  # 100 a second: each may touch the window of every call

_CONNECTIONS = 20_000
_SPARE_FILES = 256  # the journal, the log, connections to others
_SILENCE_S = 10.0


class Allowance:
    """A bucket that fills with time. It looks at the clock only when it is empty."""

    __slots__ = ("_filled_at", "_left")

    def __init__(self) -> None:
        self._left = _AT_ONCE
        self._filled_at = time.monotonic()

    def spend(self, cost: int, what: str) -> None:
        """Raises ConnectionFault when the peer did too much of `what` lately."""
        self._left -= cost
        if self._left < 0:
            now = time.monotonic()
            self._left = min(_AT_ONCE, self._left + (now - self._filled_at) * _PER_S)
            self._filled_at = now
            if self._left < 0:
                raise ConnectionFault(Fault.ENHANCE_YOUR_CALM, f"too many {what}")


class Complaints:
    """Counts what was refused, by reason, and says so in the log at most once per reason and ten seconds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._said: dict[str, tuple[float, int]] = {}

    def add(self, reason: str, peer: Callable[[], object], sentence: str) -> None:
        """`reason` is one of a few; `sentence` may hold what the peer sent."""
        self.counts[reason] += 1
        said_at, said = self._said.get(reason, (float("-inf"), 0))
        now = time.monotonic()
        if now - said_at < _SILENCE_S:
            return
        number = self.counts[reason]
        self._said[reason] = (now, number)
        unsaid = f" ({number - said} such since the last line)" if number - said > 1 else ""
        _log.info("%s: peer %s: %s%s", reason, peer(), sentence[:300], unsaid)


def max_connections() -> int:
    """As many as this process may have open files, which it raises as far as it may, less what it needs itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(_CONNECTIONS, soft - _SPARE_FILES))
