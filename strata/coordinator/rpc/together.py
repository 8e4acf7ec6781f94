"""Ranks that arrive at one barrier in one turn of the loop, on the same terms: they are heard together at its end, and
released together, whichever way they came. What is alike is checked, inserted and told once.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter

from strata.cluster.members import Group
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.company import Company
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.state.outcomes import Outcome
from strata.errors import StrataError
from strata.protocol import convert
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["Gathering"]

_road = attrgetter("road")


class _Crowd:
    """Companies in the order they came, on the same terms, and the requests of one rank after the other. `alike` is the
    arrival of one of them."""

    __slots__ = ("_requests", "alike", "companies", "request_ids", "task_id", "terms")

    def __init__(self, task_id: str, terms: object, alike: pb.BarrierRequest) -> None:
        self.task_id = task_id
        self.terms = terms
        self.alike = alike
        self.companies: list[Company] = []
        self.request_ids: list[str] = []
        self._requests: dict[str, str] = {}

    def members(self) -> Iterator[tuple[RankTie, str]]:
        """One rank after the other, each with its request."""
        return zip((tie for company in self.companies for tie in company.ties), self.request_ids, strict=True)

    def requests(self) -> dict[str, str]:
        """By worker, in the order they came. Asked for when all have come."""
        if not self._requests:
            names = (name for company in self.companies for name in company.names)
            self._requests = dict(zip(names, self.request_ids, strict=True))
        return self._requests

    def sort_out(self, group: Group) -> "tuple[_Crowd, _Crowd]":
        """Those who may act and come for the first time, with requests that are good; and the others."""
        if self._is_usual(group):
            return self, _Crowd(self.task_id, self.terms, self.alike)
        parts = (
            _Crowd(self.task_id, self.terms, self.alike),
            _Crowd(self.task_id, self.terms, self.alike),
        )
        known: set[str] = set()
        start = 0
        for company in self.companies:
            end = start + len(company.ties)
            alone = _Crowd(self.task_id, self.terms, self.alike)
            alone.companies, alone.request_ids = [company], self.request_ids[start:end]
            part = parts[0] if alone._is_usual(group) and known.isdisjoint(company.names) else parts[1]
            part.companies.append(company)
            part.request_ids += alone.request_ids
            known.update(company.names)
            start = end
        return parts

    def _is_usual(self, group: Group) -> bool:
        request_ids = self.request_ids
        if any(company.group is not group and not company.may_act(group) for company in self.companies):
            return False
        if not min(map(len, request_ids)) or max(map(len, request_ids)) > convert.MAX_REQUEST_ID:
            return False
        return len(self.requests()) == len(request_ids)


class Gathering:
    """The arrivals of this turn of the loop."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._coordinator = ties.coordinator
        self._state = ties.state
        self._crowds: list[_Crowd] = []

    def add(self, terms: object, alike: pb.BarrierRequest, company: Company, request_ids: Sequence[str]) -> None:
        """Takes the arrivals of ranks that have said their hello. What else they say must `settle` these first. On
        equal `terms`, all of `alike` but a rank's own is equal."""
        if not self._crowds:
            asyncio.get_running_loop().call_soon(self.settle)
            self._crowds.append(_Crowd(company.task_id, terms, alike))
        crowd = self._crowds[-1]
        if crowd.terms != terms or crowd.task_id != company.task_id:
            crowd = _Crowd(company.task_id, terms, alike)
            self._crowds.append(crowd)
        crowd.companies.append(company)
        crowd.request_ids += request_ids

    def settle(self) -> None:
        """Hears those who came until now."""
        if not self._crowds:
            return
        crowds, self._crowds = self._crowds, []
        for crowd in crowds:
            self._coordinator.meter.count("Tie", len(crowd.request_ids))
            self._hear_each(self._meet(crowd))

    def _hear_each(self, crowd: _Crowd) -> None:
        for tie, request_id in crowd.members():
            request = pb.BarrierRequest()
            request.CopyFrom(crowd.alike)
            request.worker_id, request.incarnation, _ = tie.caller
            request.request_id = request_id
            tie.arrive(request)

    def _meet(self, crowd: _Crowd) -> _Crowd:
        """Lets those arrive who may and were not here before. Returns the others, who must come one by one."""
        group = self._state.membership.groups.get(crowd.task_id)
        if group is None:
            return crowd
        usual, others = crowd.sort_out(group)
        requests = usual.requests()
        if not requests:
            return others
        alike = pb.BarrierRequest()
        alike.CopyFrom(usual.alike)
        alike.worker_id, alike.request_id = next(iter(requests.items()))  # of one for all: each of them is good
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
        self._ties.wait_together(waiter, usual.members)
        return others

    def _tell(self, crowd: _Crowd, waiter: Waiter, worker_ids: Sequence[str], outcome: Outcome | BaseException) -> None:
        if len(worker_ids) < len(crowd.request_ids):  # others of them are told by themselves, or have left
            self._ties.note_waits()
            crowd = _those_of(crowd, worker_ids, waiter.requests)
        if not isinstance(outcome, Outcome):
            self._ties.note_waits()
            for tie, _ in crowd.members():
                tie.on_outcome(waiter, (tie.worker_id,), outcome)
            return
        self._state.barriers.collected(waiter.key, worker_ids)
        if not self._ties.told_together(waiter):
            for tie, request_id in crowd.members():
                tie.waiters.pop(request_id, None)
        self._ties.releasing.add(_releases(crowd, outcome))


def _releases(crowd: _Crowd, outcome: Outcome) -> Iterator[Callable[[], None]]:
    """One for each road, in the order they came."""
    start = 0
    for road, neighbours in groupby(crowd.companies, _road):
        companies = list(neighbours)
        end = start + sum([len(company.ties) for company in companies])
        yield partial(road.release, outcome, companies, crowd.request_ids[start:end])
        start = end


def _those_of(crowd: _Crowd, worker_ids: Sequence[str], requests: Mapping[str, str]) -> _Crowd:
    """The crowd with these of its ranks only."""
    names, left = set(worker_ids), _Crowd(crowd.task_id, crowd.terms, crowd.alike)
    for company in crowd.companies:
        ties = [tie for tie in company.ties if tie.worker_id in names]
        if ties:
            left.companies.append(Company(company.road, ties))
            left.request_ids += [requests[tie.worker_id] for tie in ties]
    return left
