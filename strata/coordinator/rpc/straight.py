"""The ties that ranks open here themselves."""

import asyncio
from collections.abc import AsyncIterator

from google.protobuf.message import DecodeError

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
from strata.protocol.words import OwnWords

__all__ = ["StraightTies"]


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

        send, write = context.send_bytes, self._ties.releases.write
        tie = RankTie(self._ties, admit, send, end)

        def release(_: Company, event: Outcome, request_id: str, place: int) -> None:
            send(write(event, request_id, place))

        own: OwnWords | None = None
        alone: Company | None = None

        def hear(words: bytes) -> None:
            nonlocal own, alone
            if own is None or alone is None:
                self._hear(tie, words, context)
                if tie.worker_id:
                    own, alone = OwnWords(tie.worker_id, tie.caller.incarnation), Company((tie,), release)
                return
            terms = own.taken_from(words)
            if terms is None or not self._gathering.add(terms, alone):
                self._hear(tie, words, context)

        try:
            await context.listen_bytes(hear)
            tie.close()
        except StrataError as error:
            tie.close()
            await fail(context, error)
        except asyncio.CancelledError:
            tie.close(broken=True)
            raise

    def _hear(self, tie: RankTie, payload: bytes, context: Context) -> None:
        self._meter.count("Tie")
        self._ties.coordinator.check_leads()
        try:
            words = rk.RankWords.FromString(payload)
        except DecodeError:
            raise InvalidArgument("a rank's words cannot be parsed") from None
        if words.HasField("hello"):
            check_rank(context, words.hello, self._ties.state.tasks)
        tie.hear(words)
