"""The last events of the stream, so that whoever was away for a moment gets exactly what was missed.

Bounded by count and by bytes; what has fallen out is answered with a resync.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strata.observatory.answers.stream import Delta
from strata.observatory.records.encoding import encode, encoded

__all__ = ["Event", "Filter", "Frames", "Ring", "RunPart", "frame"]

_MAX_EVENTS = 50_000
_MAX_BYTES = 64 << 20
_MAX_FRAMES_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Filter:
    """What one client wants: `runs` None means every run, `topics` None every topic.

    `sparse`: many series come as an outline instead of with their points; the client asks for those it shows.
    """

    runs: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    sparse: bool = False

    def wants(self, topic: str) -> bool:
        return self.topics is None or topic in ("", *self.topics)


def frame(name: str, event_id: str, body: bytes) -> bytes:
    """One event as SSE. JSON has no line breaks, so one data line is enough."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), event_id.encode(), body)


@dataclass(frozen=True, slots=True)
class Event:
    """Encoded once; `by_run` events are put together per filter. An empty topic reaches everybody. `thin` is the body
    for sparse clients, where that is another; then `make` encodes the one for the others, which has about `num_bytes`,
    when somebody wants it."""

    seq: int
    topic: str
    name: str
    event_id: str
    body: bytes = b""
    by_run: Mapping[str, "RunPart"] | None = None
    thin: bytes | None = None
    make: Callable[[], bytes] | None = None
    num_bytes: int = 0

    @property
    def held(self) -> int:
        """Bytes that are kept of it, nearly."""
        return len(self.body) + len(self.thin or b"") + sum(part.size for part in (self.by_run or {}).values())

    @property
    def has_thin(self) -> bool:
        return self.thin is not None or any(part.thin is not None for part in (self.by_run or {}).values())

    def size(self, runs: frozenset[str] | None = None, *, sparse: bool = False) -> int:
        """Bytes for who wants these runs, nearly."""
        if self.make is not None and not sparse:
            return self.num_bytes
        return len(self._body(sparse=sparse)) + sum(part.size for part in self._parts(runs, sparse=sparse))

    def frame(self, runs: frozenset[str] | None, *, sparse: bool = False) -> bytes:
        """The bytes for who wants these runs, empty when nothing in it is of them; `sparse`: of wide metrics a few."""
        if self.by_run is None:
            return frame(self.name, self.event_id, self._body(sparse=sparse))
        parts = self._parts(runs, sparse=sparse)
        if not any(part.size for part in parts):
            return b""
        heads = [encoded(part.new_series) for part in parts if part.new_series]
        points = [encoded(part.points) for part in parts if part.points]
        return frame(self.name, self.event_id, encode(Delta(new_series=heads, points=points)))

    def _body(self, *, sparse: bool) -> bytes:
        if sparse and self.thin is not None:
            return self.thin
        return self.body if self.make is None else self.make()

    def _parts(self, runs: frozenset[str] | None, *, sparse: bool) -> "list[RunPart]":
        parts = self.by_run or {}
        chosen = list(parts.values()) if runs is None else [parts[run] for run in runs if run in parts]
        return [part.thin or part for part in chosen] if sparse else chosen


class Frames:
    """The newest frames that were put together, for the next client with the same filter. What a thousand filters of
    a thousand clients need is made again instead of kept."""

    def __init__(self, max_bytes: int = _MAX_FRAMES_BYTES) -> None:
        self._made: OrderedDict[tuple[int, frozenset[str] | None, bool], bytes] = OrderedDict()
        self._max_bytes = max_bytes
        self.num_bytes = 0

    def of(self, event: Event, wanted: Filter) -> bytes:
        """The bytes for a client, empty when nothing in it concerns it."""
        if not wanted.wants(event.topic):
            return b""
        thin = wanted.sparse and event.has_thin
        key = (event.seq, wanted.runs if event.by_run is not None else None, thin)
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = event.frame(key[1], sparse=thin)
            self.num_bytes += len(known)
            while self.num_bytes > self._max_bytes or len(self._made) > _MAX_EVENTS:
                self.num_bytes -= len(self._made.popitem(last=False)[1])
        return known


class RunPart:
    """One run's share of a delta: JSON array items, ready to be joined. `make` encodes the points, which have about
    `num_bytes`, when the first client wants them: of most runs nobody looks at any. `thin` is what a sparse client gets
    of it, where that is less."""

    def __init__(
        self, new_series: bytes, make: Callable[[], bytes], num_bytes: int, thin: "RunPart | None" = None
    ) -> None:
        self.new_series = new_series
        self.thin = thin
        self.size = len(new_series) + num_bytes
        self._make = make
        self._made: bytes | None = None

    @property
    def points(self) -> bytes:
        if self._made is None:
            self._made = self._make()
        return self._made


class Ring:
    """Events in order of their numbers, without gaps."""

    def __init__(self, max_events: int = _MAX_EVENTS, max_bytes: int = _MAX_BYTES) -> None:
        self._events: deque[Event] = deque()
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._bytes = 0
        self.last_seq = 0

    def append(self, make: Callable[[int], Event]) -> Event:
        """`make(seq)` builds the event that gets the next number."""
        self.last_seq += 1
        event = make(self.last_seq)
        self._events.append(event)
        self._bytes += event.held
        while len(self._events) > self._max_events or (self._bytes > self._max_bytes and len(self._events) > 1):
            self._bytes -= self._events.popleft().held
        return event

    def since(self, seq: int) -> list[Event] | None:
        """Every event after `seq`; None when some of them are gone, or `seq` is not of this stream."""
        missing = self.last_seq - seq
        if missing < 0 or missing > len(self._events):
            return None
        return [self._events[index] for index in range(len(self._events) - missing, len(self._events))]
