"""How a barrier ended as messages: what all members are told is filled in once, so that the thousandth costs little."""

from collections.abc import Iterator, Sequence

from strata.cluster.events import BarrierBroke, BarrierReleased
from strata.coordinator.state.outcomes import error_of, outcome_for, places_in
from strata.errors import BarrierFailed, StrataError
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.tie_frames import alike_part, releases_frame

__all__ = ["ReleaseWriter", "to_result"]


class ReleaseWriter:
    """Keeps the message of the end that was written last."""

    def __init__(self) -> None:
        self._event: BarrierReleased | BarrierBroke | None = None
        self._news = rk.RankNews()
        self._told: BarrierReleased | None = None
        self._alike = b""  # what all are told of it

    def write(self, event: BarrierReleased, worker_ids: Sequence[str], request_ids: Sequence[str]) -> Iterator[bytes]:
        """Yields the serialised RankNews for one member after the other."""
        result, places = self._result(event, worker_ids[0]), places_in(event)
        response = result.response
        for worker_id, request_id in zip(worker_ids, request_ids, strict=True):
            result.request_id = request_id
            response.arrival_order = places[worker_id]
            yield self._news.SerializeToString()

    def write_all(
        self, event: BarrierReleased, worker_ids: Sequence[str], numbers: bytes, request_ids: Sequence[str]
    ) -> bytes:
        """A frame for members that one agent tells; `numbers` are those of their ties, as Releases have them."""
        if event is not self._told:
            self._told = event
            response = self._result(event, worker_ids[0]).response
            response.ClearField("arrival_order")
            self._alike = alike_part(response)
        orders = map(places_in(event).__getitem__, worker_ids)
        own = ag.Releases(request_ids=request_ids, arrival_orders=orders).SerializeToString()
        return releases_frame(self._alike, numbers, own)

    def write_broken(self, event: BarrierBroke, request_id: str) -> bytes:
        """The serialised RankNews for one member."""
        if event is not self._event:
            self._event = event
            self._news.result.CopyFrom(to_result(error_of(event)))
        self._news.result.request_id = request_id
        return self._news.SerializeToString()

    def _result(self, event: BarrierReleased, worker_id: str) -> rk.BarrierResult:
        if event is not self._event:
            self._event = event
            response = convert.to_barrier_response(outcome_for(event, worker_id))
            self._news.result.CopyFrom(rk.BarrierResult(response=response))
        return self._news.result


def to_result(error: StrataError) -> rk.BarrierResult:
    """What a member is told that is not released; without its request."""
    result = rk.BarrierResult(error_code=error.code, error_message=error.message, error_hint=error.hint)
    if isinstance(error, BarrierFailed):
        result.missing.extend(str(name) for name in error.missing)
    return result
