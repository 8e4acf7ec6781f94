"""The ties that ranks open here themselves. What they say in one turn of the loop that is an arrival and nothing else
is heard at its end, together where it can be.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import groupby

from google.protobuf.message import DecodeError

from strata.cluster.events import BarrierReleased
from strata.cluster.members import Worker
from strata.coordinator.rpc.answer import Context, check_rank, fail
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.rpc.together import Arriving, meet
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.generated import ranks_pb2_grpc as rk_grpc
from strata.protocol.status import to_status, to_text, to_trailers
from strata.protocol.words import lone_arrival

__all__ = ["StraightTies"]


class StraightTies(rk_grpc.RanksServicer):
    """Implements `strata.ranks.Ranks`."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._meter = ties.coordinator.meter
        self._arrived: list[tuple[RankTie, pb.BarrierRequest]] = []  # in this turn of the loop

    async def Tie(self, request_iterator: AsyncIterator[rk.RankWords], context: Context) -> None:
        def admit(hello: rk.RankHello, worker: Worker) -> None:
            """Was done before the worker was looked up: a rank does not learn which others exist."""

        def end(error: StrataError) -> None:
            context.end(to_status(error), to_text(error), to_trailers(error))

        tie = RankTie(self._ties, admit, context.send_bytes, end)

        def hear(words: bytes) -> None:
            arrival = lone_arrival(words) if tie.worker_id else None
            if arrival is None:
                self._hear(tie, words, context)
            else:
                self._gather(tie, arrival)

        try:
            await context.listen_bytes(hear)
            self._close(tie)
        except StrataError as error:
            self._close(tie)
            await fail(context, error)
        except asyncio.CancelledError:
            self._close(tie, broken=True)
            raise

    def _hear(self, tie: RankTie, payload: bytes, context: Context) -> None:
        self._settle()  # nothing that a rank says overtakes its arrival
        self._meter.count("Tie")
        try:
            words = rk.RankWords.FromString(payload)
        except DecodeError:
            raise InvalidArgument("a rank's words cannot be parsed") from None
        if words.HasField("hello"):
            check_rank(context, words.hello, self._ties.state.tasks)
        tie.hear(words)

    def _close(self, tie: RankTie, *, broken: bool = False) -> None:
        self._settle()
        tie.close(broken=broken)

    # --- arrivals

    def _gather(self, tie: RankTie, request: pb.BarrierRequest) -> None:
        tie.check_own(request)
        if not self._arrived:
            asyncio.get_running_loop().call_soon(self._settle)
        self._arrived.append((tie, request))

    def _settle(self) -> None:
        if not self._arrived:
            return
        arrived, self._arrived = self._arrived, []
        self._meter.count("Tie", len(arrived))
        for _, alike in groupby(arrived, lambda item: _terms(item[1])):  # only neighbours: in the order they came
            self._arrive(list(alike))

    def _arrive(self, arrived: Sequence[tuple[RankTie, pb.BarrierRequest]]) -> None:
        try:
            arriving = [Arriving(tie, request.incarnation, request.request_id) for tie, request in arrived]
            together = len(arrived) > 1 and meet(self._ties, arriving, arrived[0][1], self._release)
        except StrataError:
            together = False
        if not together:
            for tie, request in arrived:
                tie.arrive(request)

    def _release(
        self, event: BarrierReleased, told: Sequence[RankTie], worker_ids: Sequence[str], request_ids: Sequence[str]
    ) -> None:
        news = self._ties.releases.write(event, worker_ids, request_ids)
        for tie, payload in zip(told, news, strict=True):
            tie.send(payload)


def _terms(request: pb.BarrierRequest) -> tuple[object, ...]:
    """What must be the same for those who arrive together."""
    return (
        request.barrier_id,
        request.step,
        request.expected_participants,
        request.timeout_ms,
        request.generation,
        request.policy,
    )
