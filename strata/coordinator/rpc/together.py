"""Ranks that arrive at one barrier in one turn of the loop, on the same terms: they are heard together at its end, and
released together, whichever way they came. What is alike is checked, inserted and told once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from strata.cluster.events import BarrierReleased
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.state.outcomes import Outcome
from strata.errors import StrataError
from strata.protocol import convert
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["Arriving", "Gathering"]


class Arriving(NamedTuple):
    """One of them: what is its own. The name is its tie's."""

    tie: RankTie
    incarnation: str
    request_id: str


class _Crowd(NamedTuple):
    """Neighbours in the order they came. `alike` is the arrival of one of them."""

    terms: tuple[object, ...]
    alike: pb.BarrierRequest
    arriving: list[Arriving]


class Gathering:
    """The arrivals of this turn of the loop."""

    def __init__(self, ties: Ties) -> None:
        self._ties = ties
        self._coordinator = ties.coordinator
        self._state = ties.state
        self._crowds: list[_Crowd] = []

    def add(self, alike: pb.BarrierRequest, arriving: Sequence[Arriving]) -> None:
        """Takes the arrivals of ranks that have said their hello. What else they say must `settle` these first."""
        terms = (
            arriving[0].tie.task_id,
            alike.barrier_id,
            alike.step,
            alike.expected_participants,
            alike.timeout_ms,
            alike.generation,
            alike.policy,
        )
        if not self._crowds:
            asyncio.get_running_loop().call_soon(self.settle)
        if not self._crowds or self._crowds[-1].terms != terms:
            self._crowds.append(_Crowd(terms, alike, []))
        self._crowds[-1].arriving.extend(arriving)

    def settle(self) -> None:
        """Hears those who came until now."""
        crowds, self._crowds = self._crowds, []
        for _, alike, arriving in crowds:
            self._coordinator.meter.count("Tie", len(arriving))
            for tie, incarnation, request_id in self._meet(alike, arriving):
                request = pb.BarrierRequest()
                request.CopyFrom(alike)
                request.worker_id, request.incarnation, request.request_id = tie.worker_id, incarnation, request_id
                tie.arrive(request)

    def _meet(self, alike: pb.BarrierRequest, arriving: Sequence[Arriving]) -> Sequence[Arriving]:
        """Lets those arrive who may and were not here before. Returns the others, who must come one by one."""
        group = self._state.membership.groups.get(arriving[0].tie.task_id)
        requests: dict[str, str] = {}
        present: dict[str, RankTie] = {}
        others: list[Arriving] = []
        for item in arriving:
            tie, incarnation, request_id = item
            worker_id, known, _ = tie.caller
            usual = tie.group is group and incarnation == known and request_id not in tie.waiters
            if not usual or worker_id in requests or not 0 < len(request_id) <= convert.MAX_REQUEST_ID:
                others.append(item)
                continue
            requests[worker_id] = request_id
            present[worker_id] = tie
        if group is None or not requests:
            return arriving

        def tell(waiter: Waiter, worker_ids: Sequence[str], outcome: Outcome | BaseException) -> None:
            self._tell(present, waiter, worker_ids, outcome)

        try:
            arrival = convert.from_barrier_request(alike)
            if 0 < arrival.generation < group.fence:
                return arriving
            waiter = self._coordinator.arrive_together(arrival, group.task_id, requests, tell)
        except StrataError:  # which each of them is told
            return arriving
        if waiter is None:
            return arriving
        for worker_id, tie in present.items():
            tie.waiters[requests[worker_id]] = waiter
        return others

    def _tell(
        self,
        present: Mapping[str, RankTie],
        waiter: Waiter,
        worker_ids: Sequence[str],
        outcome: Outcome | BaseException,
    ) -> None:
        if not isinstance(outcome, BarrierReleased):
            for worker_id in worker_ids:
                present[worker_id].on_outcome(waiter, (worker_id,), outcome)
            return
        self._state.barriers.collected(waiter.key, worker_ids)
        requests, start = waiter.requests, 0
        for road, neighbours in groupby(map(present.__getitem__, worker_ids), attrgetter("road")):
            ties = list(neighbours)
            names = worker_ids[start : start + len(ties)]
            request_ids = list(map(requests.__getitem__, names))
            for tie, request_id in zip(ties, request_ids, strict=True):
                tie.waiters.pop(request_id, None)
            road.release(outcome, ties, names, request_ids)
            start += len(ties)
