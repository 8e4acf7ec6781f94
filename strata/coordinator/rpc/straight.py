"""The ties that ranks open here themselves."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from operator import attrgetter

from google.protobuf.message import DecodeError

from strata.cluster.events import BarrierBroke
from strata.cluster.members import Worker
from strata.coordinator.rpc.answer import Context, check_rank, fail
from strata.coordinator.rpc.company import Company
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.rpc.together import Gathering
from strata.coordinator.state.outcomes import Outcome
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.generated import ranks_pb2_grpc as rk_grpc
from strata.protocol.status import to_status, to_text, to_trailers
from strata.protocol.words import lone_arrival

__all__ = ["StraightTies"]

_terms = attrgetter("barrier_id", "step", "expected_participants", "timeout_ms", "generation", "policy")


class StraightTies(rk_grpc.RanksServicer):
    """Implements `strata.ranks.Ranks`."""

    def __init__(self, ties: Ties, gathering: Gathering) -> None:
        self._ties = ties
        self._gathering = gathering
        self._meter = ties.coordinator.meter

    async def Tie(self, request_iterator: AsyncIterator[rk.RankWords], context: Context) -> None:
        def admit(hello: rk.RankHello, worker: Worker) -> None:
            """Was done before the worker was looked up: a rank does not learn which others exist."""

        def end(error: StrataError) -> None:
            context.end(to_status(error), to_text(error), to_trailers(error))

        tie = RankTie(self._ties, admit, context.send_bytes, end)
        alone: Company | None = None

        def hear(words: bytes) -> None:
            nonlocal alone
            arrival = lone_arrival(words)
            if arrival is None or arrival.incarnation != tie.caller.incarnation or not tie.worker_id:
                self._hear(tie, words, context)
                return
            tie.check_own(arrival)
            alone = alone or Company(self, (tie,))
            self._gathering.add(_terms(arrival), arrival, alone, (arrival.request_id,))

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
        self._gathering.settle()  # nothing that a rank says overtakes its arrival
        self._meter.count("Tie")
        self._ties.coordinator.check_leads()
        try:
            words = rk.RankWords.FromString(payload)
        except DecodeError:
            raise InvalidArgument("a rank's words cannot be parsed") from None
        if words.HasField("hello"):
            check_rank(context, words.hello, self._ties.state.tasks)
        tie.hear(words)

    def _close(self, tie: RankTie, *, broken: bool = False) -> None:
        self._gathering.settle()
        tie.close(broken=broken)

    # --- what several of them are told

    def release(self, event: Outcome, companies: Sequence[Company], request_ids: Sequence[str]) -> None:
        """Each of them is alone in its company."""
        writer = self._ties.releases
        if isinstance(event, BarrierBroke):
            written: Iterator[bytes] = (writer.write_broken(event, request_id) for request_id in request_ids)
        else:
            written = writer.write(event, [company.names[0] for company in companies], request_ids)
        for company, news in zip(companies, written, strict=True):
            company.ties[0].send(news)
