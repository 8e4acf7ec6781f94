"""Releases on the ranks' streams: what all members are told is filled in once, so that the thousandth costs little."""

from strata.cluster.events import BarrierReleased
from strata.coordinator.state.outcomes import outcome_for, place_in
from strata.protocol import convert
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["ReleaseWriter"]


class ReleaseWriter:
    """Keeps the message of the release that was written last."""

    def __init__(self) -> None:
        self._event: BarrierReleased | None = None
        self._news = rk.RankNews()

    def write(self, event: BarrierReleased, worker_id: str, request_id: str) -> bytes:
        """The serialised message for one member."""
        result = self._news.result
        if event is not self._event:
            self._event = event
            result.response.CopyFrom(convert.to_barrier_response(outcome_for(event, worker_id)))
        result.request_id = request_id
        result.response.arrival_order = place_in(event, worker_id)
        return self._news.SerializeToString()
