"""The ties that one agent carries: frames of its stream become words of ranks, and what ranks must hear becomes frames.
Ranks that arrive at a barrier together are heard together and released together; so are those that beat together.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from google.protobuf.message import DecodeError

from strata.cluster.events import BarrierReleased
from strata.coordinator.rpc.beats import take_beats
from strata.coordinator.rpc.company import Company
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.rpc.together import Gathering
from strata.coordinator.state.outcomes import Outcome
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.tie_frames import (
    beat_words,
    heard_part,
    news_frame,
    news_to_all,
    ties_message,
    written_frame,
)

__all__ = ["CarriedTies"]

_COMPANIES = 64  # that are kept: those who arrive in one turn are most often the same
_ENDED = 1_000  # ties that are remembered as ended: far more than a host has ranks


class CarriedTies:
    """By the agent's number. `send` takes what goes to the agent, a CoordinatorMessage as bytes. An agent of an older
    release does not take news for several ranks in one frame."""

    def __init__(
        self,
        ties: Ties,
        gathering: Gathering,
        agent_id: str,
        send: Callable[[bytes], None],
        *,
        takes_news: bool = False,
    ) -> None:
        self._ties = ties
        self._gathering = gathering
        self._agent_id = agent_id
        self._send = send
        self._takes_news = takes_news
        self._carried: dict[int, RankTie] = {}
        self._ended: dict[int, None] = {}  # here, which the agent was told and may not have heard yet; oldest first
        self._companies: dict[bytes, Company] = {}  # as the agent names them; none of a tie that has ended
        self._beating: dict[tuple[int, ...], Company] = {}  # by their ties, likewise
        self._known: _Known | None = None  # likewise
        self._outgoing: list[bytes] = []

    def on_frames(self, frames: ag.TieFrames) -> None:
        num_alone = 0
        for frame in frames.frames:
            if frame.HasField("arrivals"):
                self._arrive(frame.arrivals)
            elif frame.HasField("beats"):
                self._beat(frame.beats)
            else:
                num_alone += 1
                self._on_frame(frame)
        if num_alone:
            self._ties.coordinator.meter.count("Tie", num_alone)

    def close(self) -> None:
        """The agent's stream has ended."""
        for tie in self._carried.values():
            tie.close(broken=True)

    # --- one rank

    def _on_frame(self, frame: ag.TieFrame) -> None:
        number = frame.tie
        try:
            words = rk.RankWords.FromString(frame.payload) if frame.payload else None
            tie = self._carried.get(number) or self._open(number, words)
            if tie is not None and words is not None:
                tie.hear(words)
        except StrataError as error:
            self._refuse(number, error)
        except DecodeError:
            self._refuse(number, InvalidArgument("a rank's words cannot be parsed"))
        if frame.ended and (tie := self._carried.get(number)) is not None:
            self._forget(number)
            tie.close()

    def _open(self, number: int, words: rk.RankWords | None) -> RankTie | None:
        """None if there is nothing to hear. What a rank said before it heard that its tie has ended is passed over: to
        refuse each such word again would be a storm when thousands of ties end."""
        if words is None or (number in self._ended and not words.HasField("hello")):
            return None
        send, end = partial(self._send_frame, number), partial(self._end_tie, number)
        tie = self._carried[number] = self._ties.carried(number, self._agent_id, send, end)
        tie.host = self if self._takes_news else None
        self._ended.pop(number, None)
        return tie

    def _refuse(self, number: int, error: StrataError) -> None:
        tie = self._carried.get(number)
        if tie is not None:
            tie.close()
        self._end_tie(number, error)

    def _forget(self, number: int) -> None:
        self._beating.clear()
        self._companies.clear()
        self._known = None
        self._carried.pop(number, None)

    def _send_frame(self, number: int, payload: bytes) -> None:
        self._say(news_frame(number, payload))

    def _end_tie(self, number: int, error: StrataError) -> None:
        self._forget(number)
        self._ended[number] = None
        if len(self._ended) > _ENDED:
            del self._ended[next(iter(self._ended))]
        frame = ag.TieFrame(tie=number, ended=True, error_code=error.code)
        frame.error_message, frame.error_hint = error.message, error.hint
        self._say(written_frame(frame))

    def _say(self, frame: bytes) -> None:
        """What goes to the ranks of this host in this turn of the loop leaves as one message."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(frame)

    def _flush(self) -> None:
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            self._send(ties_message(outgoing))

    def tell(self, numbers: Sequence[int], alike: bytes, own: Sequence[bytes] = ()) -> None:
        """Tells several of its ranks: what is alike, and behind it the rest of each one's news."""
        self._say(news_to_all(numbers, alike, own))

    # --- ranks that beat together

    def _beat(self, said: ag.Beats) -> None:
        if not len(said.ties) == len(said.sequences) == len(said.own):
            raise InvalidArgument("an agent's beats cannot be read")
        self._ties.coordinator.meter.count("Tie", len(said.ties))
        company = self._company_of(tuple(said.ties))
        if company is None or not self._beat_as_one(company, said):
            for number, sequence, own in zip(said.ties, said.sequences, said.own, strict=True):
                self._on_frame(ag.TieFrame(tie=number, payload=beat_words(said.alike + own, sequence)))

    def _company_of(self, numbers: tuple[int, ...]) -> Company | None:
        """None if one of them is not known, or their groups are several."""
        if numbers in self._beating:
            return self._beating[numbers]
        ties = [tie for tie in map(self._carried.get, numbers) if tie is not None]
        if len({tie.task_id for tie in ties}) != 1 or not len(ties) == len(set(numbers)) == len(numbers):
            return None
        if len(self._beating) >= _COMPANIES:
            self._beating.clear()
        company = self._beating[numbers] = Company(ties, self._release)
        return company

    def _beat_as_one(self, company: Company, said: ag.Beats) -> bool:
        """False if one of them must be let in anew, or if what they say cannot be taken."""
        state, coordinator = self._ties.state, self._ties.coordinator
        group = state.membership.groups.get(company.task_id)
        if group is None or not company.may_act(group):
            return False
        if not take_beats(state, company.names, said.alike, said.own, coordinator.now()):
            return False
        alike, own = self._ties.ack(company.task_id, 0), [heard_part(number) for number in said.sequences]
        coordinator.when_settled(lambda error: None if error else self.tell(said.ties, alike, own))
        return True

    # --- ranks that arrive together

    def hear_known(self, message: bytes) -> bool:
        """Whether this AgentMessage is one arrival of a company that came before, in which nothing is new but what it
        says: then it is heard without being read."""
        known = self._known
        if known is None or not message.endswith(known.tail):
            return False
        tail = len(known.tail)
        return self._gathering.add_known(message[:-tail], tail, known.company)

    def note_known(self, message: bytes, said: ag.TieFrames) -> None:
        """What was read of this AgentMessage need not be read again."""
        if len(said.frames) != 1 or not said.frames[0].HasField("arrivals"):
            return
        arrivals = said.frames[0].arrivals
        company = self._companies.get(arrivals.company)
        tail = ag.Arrivals(company=arrivals.company).SerializeToString()
        if company is not None and not arrivals.request_ids and message.endswith(tail):
            self._known = _Known(company, tail)
            self._gathering.note_terms(message[: -len(tail)], len(tail), arrivals.alike)

    def _arrive(self, said: ag.Arrivals) -> None:
        try:
            company = self._companies.get(said.company) or self._find(said.company)
            alone = list(_alone(said)) if company is None or said.request_ids else []
        except (DecodeError, ValueError):
            raise InvalidArgument("an agent's arrivals cannot be read") from None
        if company is not None and not alone and not self._gathering.add(said.alike, company):
            raise InvalidArgument("what an agent's arrivals have in common cannot be read")
        for frame in alone:
            self._on_frame(frame)
        self._ties.coordinator.meter.count("Tie", len(alone))

    def _find(self, said: bytes) -> Company | None:
        """None if they cannot be heard as one: somebody is not known by that name, or their groups are several."""
        named = ag.Company.FromString(said)
        ties = [tie for tie in map(self._carried.get, named.ties) if tie is not None]
        known = [(tie.caller.worker_id, tie.caller.incarnation) for tie in ties]
        if known != list(zip(named.worker_ids, named.incarnations, strict=True)) or len(ties) != len(named.ties):
            return None
        if len({tie.task_id for tie in ties}) != 1 or len(set(named.ties)) != len(ties):
            return None
        if len(self._companies) >= _COMPANIES:
            self._companies.clear()
        company = self._companies[said] = Company(ties, self._release)
        return company

    def _release(self, company: Company, event: Outcome, request_id: str, place: int) -> None:
        """A message of its own, behind what waits: thousands of hosts are told, and a turn of the loop for each would
        cost more than the message."""
        writer = self._ties.releases
        if isinstance(event, BarrierReleased):
            if self._outgoing:
                self._flush()
            self._send(writer.write_all(event, request_id, company.numbers(), place))
            return
        news = writer.write(event, request_id, 0)
        if self._takes_news:
            self.tell([tie.number for tie in company.ties], news)
            return
        for tie in company.ties:
            tie.send(news)


class _Known(NamedTuple):
    """The company that came last, and how a message ends that names it."""

    company: Company
    tail: bytes


def _alone(said: ag.Arrivals) -> Iterator[ag.TieFrame]:
    """The same as the agent would have passed it on, rank by rank."""
    company, alike = ag.Company.FromString(said.company), pb.BarrierRequest.FromString(said.alike)
    request_ids = said.request_ids or [alike.request_id] * len(company.ties)
    ranks = zip(company.ties, company.worker_ids, company.incarnations, request_ids, strict=True)
    for tie, worker_id, incarnation, request_id in ranks:
        words = rk.RankWords(arrivals=(alike,))
        (request,) = words.arrivals
        request.worker_id, request.incarnation, request.request_id = worker_id, incarnation, request_id
        yield ag.TieFrame(tie=tie, payload=words.SerializeToString())
