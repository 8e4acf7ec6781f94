"""Ranks that arrive at one barrier within a moment, on the same terms: they are heard together, and released together,
whichever way they came. What is alike is checked, inserted and told once.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import chain

from strata.cluster.events import BarrierBroke
from strata.cluster.members import Group
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.company import Company, Party
from strata.coordinator.rpc.ties import Ties
from strata.coordinator.state.outcomes import Outcome, places_in
from strata.errors import StrataError
from strata.protocol import convert
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.words import read_terms
from strata.types.barriers import BarrierKey

__all__ = ["Gathering"]

_PATIENCE_S = 0.002  # for which those who came wait for others, unless all are here
_HEADS = 64  # of messages that are known: at one barrier they are few, by the lengths of names


class _Crowd:
    """Companies in the order they came, all of whom said the same, `alike`: their request is one, too."""

    __slots__ = ("alike", "companies", "size", "task_id", "terms")

    def __init__(self, task_id: str, terms: bytes, alike: pb.BarrierRequest) -> None:
        self.task_id = task_id
        self.terms = terms
        self.alike = alike
        self.companies: list[Company] = []
        self.size = 0

    def sort_out(self, group: Group) -> tuple[Party | None, Sequence[Company], Sequence[Company]]:
        """Those who may act and come once, also as they came; and the others."""
        party = Party.of(self.companies)
        if party.is_usual(group):
            return party, self.companies, ()
        usual: list[Company] = []
        others: list[Company] = []
        known: set[str] = set()
        for company in self.companies:
            is_usual = company.may_act(group) and known.isdisjoint(company.names)
            (usual if is_usual else others).append(company)
            known.update(company.names)
        return Party(usual) if usual else None, usual, others


class Gathering:
    """The arrivals of this moment: until all are here whom a barrier waits for, something else is said, or it is over.
    To hear a thousand ranks at once is half the work of hearing them in six parts."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._coordinator = ties.coordinator
        self._state = ties.state
        self._crowds: list[_Crowd] = []
        self._looks = False  # at the end of this turn
        self._patience: asyncio.TimerHandle | None = None  # while these wait for others
        self._told: Outcome | None = None
        self._told_from = 0  # how many stand in it before those who were told
        self._heads: dict[tuple[bytes, int], bytes] = {}
        self._coordinator.settle_first(self.settle)

    def add(self, terms: bytes, company: Company) -> bool:
        """Takes the arrivals of ranks that have said their hello. False if these are no terms."""
        crowd = self._crowds[-1] if self._crowds else None
        if crowd is None or crowd.terms != terms or crowd.task_id != company.task_id:
            try:
                crowd = _Crowd(company.task_id, terms, read_terms(terms))
            except ValueError:
                return False
            self._crowds.append(crowd)
        crowd.companies.append(company)
        crowd.size += len(company.names)
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._look)
        return True

    def add_known(self, head: bytes, tail: int, company: Company) -> bool:
        """The same for what an agent's message says that begins like this, and in whose last so many bytes the company
        is named. What a thousand agents send at one barrier differs only in these, so it is read once. False if it was
        not."""
        terms = self._heads.get((head, tail))
        return terms is not None and self.add(terms, company)

    def note_terms(self, head: bytes, tail: int, terms: bytes) -> None:
        """What such a message says."""
        if len(self._heads) >= _HEADS:
            self._heads.clear()
        self._heads[head, tail] = terms

    def _look(self) -> None:
        """Those who came in this turn are heard now, or a moment later with others."""
        self._looks = False
        if len(self._crowds) != 1 or self._are_all_here(self._crowds[0]):
            self.settle()
        elif self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(_PATIENCE_S, self.settle)

    def _are_all_here(self, crowd: _Crowd) -> bool:
        alike = crowd.alike
        key = BarrierKey(crowd.task_id, alike.barrier_id, alike.step)
        return crowd.size >= self._state.barriers.num_missing(key, alike.expected_participants)

    def settle(self) -> None:
        """Hears those who came until now."""
        if not self._crowds:
            return
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        crowds, self._crowds = self._crowds, []
        for crowd in crowds:
            self._coordinator.meter.count("Tie", crowd.size)
            for company in self._meet(crowd):
                self._hear_each(company, crowd.alike)

    def _hear_each(self, company: Company, alike: pb.BarrierRequest) -> None:
        for tie in company.ties:
            request = pb.BarrierRequest()
            request.CopyFrom(alike)
            request.worker_id, request.incarnation, _ = tie.caller
            tie.arrive(request)

    def _meet(self, crowd: _Crowd) -> Sequence[Company]:
        """Lets those arrive who may and were not here before. Returns the others, who must come one by one."""
        group = self._state.membership.groups.get(crowd.task_id)
        if group is None or not crowd.alike.request_id:
            return crowd.companies
        party, usual, others = crowd.sort_out(group)
        if party is None:
            return others
        alike = pb.BarrierRequest()
        alike.CopyFrom(crowd.alike)
        alike.worker_id = party.roll.names[0]  # of one for all: each of them is good
        try:
            arrival = convert.from_barrier_request(alike)
            if 0 < arrival.generation < group.fence:
                return crowd.companies
            tell = partial(self._tell, party, usual)
            waiter = self._coordinator.arrive_together(arrival, crowd.task_id, party.roll, tell)
        except StrataError:  # which each of them is told
            return crowd.companies
        if waiter is None:
            return crowd.companies
        self._ties.wait_together(waiter, party.ties)
        return others

    def _tell(
        self,
        party: Party,
        came: Sequence[Company],
        waiter: Waiter,
        worker_ids: Sequence[str],
        outcome: Outcome | BaseException,
    ) -> None:
        """Who came last is told first. A barrier most often waits for the same ones again, and those who begin their
        next step before a thousand others were told come sooner to the next barrier."""
        is_whole = len(worker_ids) == len(party.roll)  # else others of them are told by themselves, or have left
        if not is_whole or not isinstance(outcome, Outcome):
            self._ties.note_waits()
        companies = came[::-1] if is_whole else party.only(worker_ids)
        ties = chain.from_iterable(company.ties for company in companies)
        if not isinstance(outcome, Outcome):
            for tie in ties:
                tie.on_outcome(waiter, (tie.worker_id,), outcome)
            return
        self._state.barriers.collected(waiter.key, worker_ids)
        if not self._ties.told_together(waiter):
            for tie in ties:
                tie.waiters.pop(waiter.request_id, None)
        places = self._places(party, companies, outcome) if is_whole else _places_of(companies, outcome)
        releases = [company.release for company in companies]
        self._ties.releasing.add(outcome, waiter.request_id, zip(releases, places, strict=True))

    def _places(self, party: Party, companies: Sequence[Company], outcome: Outcome) -> Sequence[int]:
        """That of each company's first rank. The party's ranks stand one behind the other, and most often before those
        who were told before."""
        if isinstance(outcome, BarrierBroke):
            return _places_of(companies, outcome)
        first, before = party.roll.names[0], self._told_from if self._told is outcome else len(outcome.worker_ids)
        before -= len(party.roll)
        if before < 0 or outcome.worker_ids[before] != first:
            before = places_in(outcome)[first] - 1
        self._told, self._told_from = outcome, before
        return [before + party.places[company] + 1 for company in companies]


def _places_of(companies: Sequence[Company], outcome: Outcome) -> Sequence[int]:
    """0 if nobody has one."""
    if isinstance(outcome, BarrierBroke):
        return [0] * len(companies)
    places = places_in(outcome)
    return [places[company.names[0]] for company in companies]
