"""The ties that one agent carries: frames of its stream become words of ranks, and what ranks must hear becomes frames.
Ranks that arrive at a barrier together are heard together and released together.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from google.protobuf.message import DecodeError

from strata.cluster.events import BarrierReleased
from strata.coordinator.rpc.company import Company
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.rpc.together import Gathering
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.tie_frames import news_frame, ties_message, written_frame
from strata.protocol.words import read_terms

__all__ = ["CarriedTies"]

_COMPANIES = 64  # that are kept: those who arrive in one turn are most often the same


class CarriedTies:
    """By the agent's number. `send` takes what goes to the agent, a CoordinatorMessage as bytes."""

    def __init__(self, ties: Ties, gathering: Gathering, agent_id: str, send: Callable[[bytes], None]) -> None:
        self._ties = ties
        self._gathering = gathering
        self._agent_id = agent_id
        self._send = send
        self._carried: dict[int, RankTie] = {}
        self._companies: dict[bytes, Company] = {}  # as the agent names them; none of a tie that has ended
        self._outgoing: list[bytes] = []

    def on_frames(self, frames: ag.TieFrames) -> None:
        num_alone = 0
        for frame in frames.frames:
            if frame.HasField("arrivals"):
                self._arrive(frame.arrivals)
            else:
                num_alone += 1
                self._on_frame(frame)
        if num_alone:
            self._ties.coordinator.meter.count("Tie", num_alone)

    def close(self) -> None:
        """The agent's stream has ended."""
        self._gathering.settle()
        for tie in self._carried.values():
            tie.close(broken=True)

    # --- one rank

    def _on_frame(self, frame: ag.TieFrame) -> None:
        self._gathering.settle()  # nothing that a rank says overtakes its arrival
        number = frame.tie
        tie = self._carried.get(number)
        if tie is None and frame.payload:
            send, end = partial(self._send_frame, number), partial(self._end_tie, number)
            tie = self._carried[number] = self._ties.carried(number, self._agent_id, send, end)
        if tie is None:
            return
        try:
            if frame.payload:
                tie.hear(rk.RankWords.FromString(frame.payload))
        except StrataError as error:
            tie.close()
            self._end_tie(number, error)
        except DecodeError:
            tie.close()
            self._end_tie(number, InvalidArgument("a rank's words cannot be parsed"))
        if frame.ended and self._forget(number):
            tie.close()

    def _forget(self, number: int) -> bool:
        self._companies.clear()
        return self._carried.pop(number, None) is not None

    def _send_frame(self, number: int, payload: bytes) -> None:
        self._say(news_frame(number, payload))

    def _end_tie(self, number: int, error: StrataError) -> None:
        self._forget(number)
        frame = ag.TieFrame(tie=number, ended=True, error_code=error.code)
        frame.error_message, frame.error_hint = error.message, error.hint
        self._say(written_frame(frame))

    def _say(self, frame: bytes) -> None:
        """What goes to the ranks of this host in this turn of the loop leaves as one message."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(frame)

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        self._send(ties_message(outgoing))

    # --- ranks that arrive together

    def _arrive(self, said: ag.Arrivals) -> None:
        request_ids = list(said.request_ids)
        try:
            alike = read_terms(said.alike)
            company = self._companies.get(said.company) or self._find(said.company, len(request_ids))
            frames = () if company is not None else tuple(_alone(said))
        except (DecodeError, ValueError):
            raise InvalidArgument("an agent's arrivals cannot be read") from None
        for frame in frames:
            self._on_frame(frame)
        if company is None:
            self._ties.coordinator.meter.count("Tie", len(frames))
            return
        if len(company.ties) != len(request_ids):
            raise InvalidArgument(f"an agent has {len(request_ids)} requests for {len(company.ties)} arrivals")
        self._gathering.add(said.alike, alike, company, request_ids)

    def _find(self, said: bytes, size: int) -> Company | None:
        """None if they cannot be heard as one: somebody is not known by that name, or their groups are several."""
        named = ag.Company.FromString(said)
        ties = [tie for tie in map(self._carried.get, named.ties) if tie is not None]
        known = [(tie.caller.worker_id, tie.caller.incarnation) for tie in ties]
        if known != list(zip(named.worker_ids, named.incarnations, strict=True)) or len(ties) != size:
            return None
        if len({tie.task_id for tie in ties}) != 1 or len(set(named.ties)) != size:
            return None
        if len(self._companies) >= _COMPANIES:
            self._companies.clear()
        company = self._companies[said] = Company(self, ties)
        return company

    def release(self, event: BarrierReleased, companies: Sequence[Company], request_ids: Sequence[str]) -> None:
        start = 0
        for company in companies:
            end = start + len(company.ties)
            own = request_ids[start:end]
            self._say(self._ties.releases.write_all(event, company.names, company.numbers(), own))
            start = end


def _alone(said: ag.Arrivals) -> Iterator[ag.TieFrame]:
    """The same as the agent would have passed it on, rank by rank."""
    company = ag.Company.FromString(said.company)
    ranks = zip(company.ties, company.worker_ids, company.incarnations, said.request_ids, strict=True)
    for tie, worker_id, incarnation, request_id in ranks:
        words = rk.RankWords(arrivals=(pb.BarrierRequest.FromString(said.alike),))
        (request,) = words.arrivals
        request.worker_id, request.incarnation, request.request_id = worker_id, incarnation, request_id
        yield ag.TieFrame(tie=tie, payload=words.SerializeToString())
