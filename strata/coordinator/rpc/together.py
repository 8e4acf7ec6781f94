"""Ranks that arrive at one barrier within a moment, on the same terms: they are heard together, and released together,
whichever way they came. What is alike is checked, inserted and told once.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain

from strata.cluster.events import BarrierBroke
from strata.cluster.members import Group
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.company import Company
from strata.coordinator.rpc.ties import RankTie, Ties
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

    __slots__ = ("_requests", "_size", "alike", "companies", "task_id", "terms")

    def __init__(self, task_id: str, terms: bytes, alike: pb.BarrierRequest) -> None:
        self.task_id = task_id
        self.terms = terms
        self.alike = alike
        self.companies: list[Company] = []
        self._requests: dict[str, str] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, company: Company) -> None:
        self.companies.append(company)
        self._size += len(company.names)

    def ties(self) -> Iterator[RankTie]:
        """One rank after the other."""
        return (tie for company in self.companies for tie in company.ties)

    def requests(self) -> dict[str, str]:
        """By worker, in the order they came. Asked for when all have come."""
        if not self._requests:
            names = chain.from_iterable([company.names for company in self.companies])
            self._requests = dict.fromkeys(names, self.alike.request_id)
        return self._requests

    def sort_out(self, group: Group) -> "tuple[_Crowd, _Crowd]":
        """Those who may act and come once; and the others."""
        usual, others = self._like(), self._like()
        may_act = all(company.group is group or company.may_act(group) for company in self.companies)
        if may_act and len(self.requests()) == len(self):
            return self, others
        known: set[str] = set()
        for company in self.companies:
            is_usual = company.may_act(group) and known.isdisjoint(company.names)
            (usual if is_usual else others).add(company)
            known.update(company.names)
        return usual, others

    def only(self, worker_ids: Collection[str]) -> "_Crowd":
        """The crowd with these of its ranks, each alone: somebody else may stand between their places."""
        names, left = set(worker_ids), self._like()
        for company in self.companies:
            for tie in company.ties:
                if tie.worker_id in names:
                    left.add(Company(company.road, (tie,)))
        return left

    def _like(self) -> "_Crowd":
        """Nobody, on the same terms."""
        return _Crowd(self.task_id, self.terms, self.alike)


class Gathering:
    """The arrivals of this moment: until all are here whom a barrier waits for, something else is said, or it is over.
    To hear a thousand ranks at once is half the work of hearing them in six parts."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._coordinator = ties.coordinator
        self._state = ties.state
        self._crowds: list[_Crowd] = []
        self._looks = self._waits = False  # at the end of this turn; for others
        self._told: Outcome | None = None
        self._next_place = 1  # in it, of who comes behind those who were told
        self._heads: dict[tuple[bytes, int], tuple[bytes, pb.BarrierRequest]] = {}
        self._coordinator.settle_first(self.settle)

    def add(self, terms: bytes, alike: pb.BarrierRequest, company: Company) -> None:
        """Takes the arrivals of ranks that have said their hello. What else they say must `settle` these first.
        `alike` is what `terms` say."""
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._look)
        crowd = self._crowds[-1] if self._crowds else None
        if crowd is None or crowd.terms != terms or crowd.task_id != company.task_id:
            crowd = _Crowd(company.task_id, terms, alike)
            self._crowds.append(crowd)
        crowd.add(company)

    def _look(self) -> None:
        """Those who came in this turn are heard now, or a moment later with others."""
        self._looks = False
        if len(self._crowds) != 1 or self._are_all_here(self._crowds[0]):
            self.settle()
        elif not self._waits:
            self._waits = True
            asyncio.get_running_loop().call_later(_PATIENCE_S, self._wait_no_more)

    def _wait_no_more(self) -> None:
        self._waits = False
        self.settle()

    def _are_all_here(self, crowd: _Crowd) -> bool:
        alike = crowd.alike
        key = BarrierKey(crowd.task_id, alike.barrier_id, alike.step)
        return len(crowd) >= self._state.barriers.num_missing(key, alike.expected_participants)

    # --- messages of agents that are known by their bytes

    def terms_of(self, head: bytes, tail: int) -> tuple[bytes, pb.BarrierRequest] | None:
        """What arrivals say in a message that begins like this, and in whose last so many bytes a company is named:
        what a thousand agents send at one barrier differs only in these."""
        return self._heads.get((head, tail))

    def note_terms(self, head: bytes, tail: int, terms: bytes) -> None:
        if len(self._heads) >= _HEADS:
            self._heads.clear()
        self._heads[head, tail] = terms, read_terms(terms)

    def settle(self) -> None:
        """Hears those who came until now."""
        if not self._crowds:
            return
        crowds, self._crowds = self._crowds, []
        for crowd in crowds:
            self._coordinator.meter.count("Tie", len(crowd))
            self._hear_each(self._meet(crowd))

    def _hear_each(self, crowd: _Crowd) -> None:
        for tie in crowd.ties():
            request = pb.BarrierRequest()
            request.CopyFrom(crowd.alike)
            request.worker_id, request.incarnation, _ = tie.caller
            tie.arrive(request)

    def _meet(self, crowd: _Crowd) -> _Crowd:
        """Lets those arrive who may and were not here before. Returns the others, who must come one by one."""
        group = self._state.membership.groups.get(crowd.task_id)
        if group is None or not crowd.alike.request_id:
            return crowd
        usual, others = crowd.sort_out(group)
        requests = usual.requests()
        if not requests:
            return others
        alike = pb.BarrierRequest()
        alike.CopyFrom(usual.alike)
        alike.worker_id = next(iter(requests))  # of one for all: each of them is good
        try:
            arrival = convert.from_barrier_request(alike)
            if 0 < arrival.generation < group.fence:
                return crowd
            tell = partial(self._tell, usual)
            waiter = self._coordinator.arrive_together(arrival, crowd.task_id, requests, tell)
        except StrataError:  # which each of them is told
            return crowd
        if waiter is None:
            return crowd
        self._ties.wait_together(waiter, usual.ties)
        return others

    def _tell(self, crowd: _Crowd, waiter: Waiter, worker_ids: Sequence[str], outcome: Outcome | BaseException) -> None:
        is_whole = len(worker_ids) == len(crowd)  # else others of them are told by themselves, or have left
        if not is_whole:
            self._ties.note_waits()
            crowd = crowd.only(worker_ids)
        if not isinstance(outcome, Outcome):
            self._ties.note_waits()
            for tie in crowd.ties():
                tie.on_outcome(waiter, (tie.worker_id,), outcome)
            return
        self._state.barriers.collected(waiter.key, worker_ids)
        if not self._ties.told_together(waiter):
            for tie in crowd.ties():
                tie.waiters.pop(crowd.alike.request_id, None)
        tell = partial(_release, outcome, crowd.alike.request_id)
        self._ties.releasing.add(tell, self._placed(crowd.companies, outcome, is_whole=is_whole))

    def _placed(
        self, companies: Sequence[Company], outcome: Outcome, *, is_whole: bool
    ) -> Iterator[tuple[Company, int]]:
        """Each with the place of its first rank, 0 if nobody has one. Those of a crowd that is whole stand one behind
        the other, and most often behind the crowd that was told before."""
        if isinstance(outcome, BarrierBroke):
            return ((company, 0) for company in companies)
        if not is_whole:
            places = places_in(outcome)
            return ((company, places[company.names[0]]) for company in companies)
        first, place = companies[0].names[0], self._next_place if self._told is outcome else 1
        if outcome.worker_ids[place - 1 : place] != (first,):
            place = places_in(outcome)[first]
        *each, self._next_place = accumulate([place, *[len(company.names) for company in companies]])
        self._told = outcome
        return zip(companies, each, strict=True)


def _release(outcome: Outcome, request_id: str, company: Company, place: int) -> None:
    company.road.release(outcome, request_id, company, place)
