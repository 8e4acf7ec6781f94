"""How a barrier ended as messages: what all members are told is written once, so that the thousandth costs little."""

import uuid
from collections import deque
from collections.abc import Callable
from itertools import count

from strata.cluster.events import BarrierBroke, BarrierReleased
from strata.coordinator.state.outcomes import Outcome, error_of, places_in, result_of
from strata.errors import BarrierFailed, StrataError
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.tie_frames import (
    begun_releases,
    first_order_part,
    order_part,
    release_news,
    releases_alike,
    request_part,
)

__all__ = ["ReleaseWriter", "to_result"]


_NAMED = 64  # releases whose names are kept: those of several tasks leave at the same time, and some ask again


class ReleaseWriter:
    """Keeps what was written of the last end. Each release has a name that no other has, not even one of a coordinator
    that had the same data folder: a rank that had one of both would use a request twice.

    `position` says in which term and record a release is written that is not durable yet. Its ranks say that again in
    their next hello, so that a coordinator whose host lost power sees what it has forgotten (ADR 47)."""

    def __init__(self, position: Callable[[BarrierReleased], tuple[int, int]]) -> None:
        self._position = position
        start = uuid.uuid4().hex[:8]
        self._names = (f"{start}.{number}" for number in count(1))
        self._named: deque[tuple[BarrierReleased, str]] = deque(maxlen=_NAMED)  # newest first
        self._event: Outcome | None = None
        self._request_id: str | None = None
        self._alike = b""  # what all are told, without their request: RankNews
        self._response = b""  # of a release, without the request: Releases
        self._news = b""  # with the request: RankNews
        self._begun: dict[tuple[bytes, int], bytes] = {}  # messages by numbers of ties, which are the same on most
        # hosts, and by the length of what is missing: the place

    def write(self, event: Outcome, request_id: str, place: int) -> bytes:
        """The serialised RankNews for one member; its place counts if it is released."""
        if event is not self._event or request_id != self._request_id:
            self._prepare(event, request_id)
        return self._news + order_part(place) if isinstance(event, BarrierReleased) else self._news

    def write_alone(self, event: Outcome, request_id: str, worker_id: str) -> bytes:
        """The same for one of whom only the name is known."""
        return self.write(event, request_id, places_in(event)[worker_id] if isinstance(event, BarrierReleased) else 0)

    def write_all(self, event: BarrierReleased, request_id: str, numbers: bytes, place: int) -> bytes:
        """The message for members that one agent tells, of whom the first has this place, and so on; `numbers` are
        those of their ties, as Releases have them."""
        if event is not self._event or request_id != self._request_id:
            self._prepare(event, request_id)
        order = first_order_part(place)
        begun = self._begun.get((numbers, len(order)))
        if begun is None:
            request = ag.Releases(request_id=request_id).SerializeToString()
            begun = begun_releases(self._response + numbers + request, len(order))
            self._begun[numbers, len(order)] = begun
        return begun + order

    def _prepare(self, event: Outcome, request_id: str) -> None:
        if event is not self._event:
            self._event = event
            self._fill(event)
        self._request_id = request_id
        self._news = self._alike + request_part(request_id)
        self._begun = {}

    def _fill(self, event: Outcome) -> None:
        if isinstance(event, BarrierBroke):
            self._alike = rk.RankNews(result=to_result(error_of(event))).SerializeToString()
            return
        response = convert.to_barrier_response(result_of(event, 0))
        response.meeting = self._name_of(event)
        response.term, response.record = self._position(event)
        written = response.SerializeToString()
        self._alike, self._response = release_news(written), releases_alike(written)

    def _name_of(self, event: BarrierReleased) -> str:
        """The same however often it is told, so that those who met have one."""
        for named, name in self._named:
            if named is event:
                return name
        name = next(self._names)
        self._named.appendleft((event, name))
        return name


def to_result(error: StrataError) -> rk.BarrierResult:
    """What a member is told that is not released; without its request."""
    result = rk.BarrierResult(error_code=error.code, error_message=error.message, error_hint=error.hint)
    if isinstance(error, BarrierFailed):
        result.missing.extend(str(name) for name in error.missing)
    return result
