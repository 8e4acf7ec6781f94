"""Ranks that arrive at one barrier in one turn of the loop, on the same terms: they are heard together and released
together, whichever way they came. What is alike is checked, inserted and told once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from strata.cluster.events import BarrierReleased
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.state.outcomes import Outcome
from strata.protocol import convert
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["Arriving", "Release", "meet"]

# Writes to members what they are told: their ties, their names in the order of arrival, their requests.
Release = Callable[[BarrierReleased, Sequence[RankTie], Sequence[str], Sequence[str]], None]


class Arriving(NamedTuple):
    """One of them: what is its own. The name is its tie's."""

    tie: RankTie
    incarnation: str
    request_id: str


def meet(ties: Ties, arriving: Sequence[Arriving], alike: pb.BarrierRequest, release: Release) -> bool:
    """Lets them arrive, at what `alike` says. False or a StrataError, and nothing was done, when one of them may be
    refused, or was here before: they must come one by one."""
    requests: dict[str, str] = {}
    present: dict[str, RankTie] = {}
    group = arriving[0].tie.group
    for tie, incarnation, request_id in arriving:
        worker_id, known, _ = tie.caller
        if tie.group is not group or incarnation != known or not request_id or request_id in tie.waiters:
            return False
        requests[worker_id] = request_id
        present[worker_id] = tie
    if len(requests) < len(arriving):
        return False
    if group is None or ties.state.membership.groups.get(group.task_id) is not group:
        return False
    convert.check_request_id(max(requests.values(), key=len))
    alike.worker_id = arriving[0].tie.worker_id  # one name for all of them, each of which is a worker's
    arrival = convert.from_barrier_request(alike)
    if 0 < arrival.generation < group.fence:
        return False

    def tell(waiter: Waiter, worker_ids: Sequence[str], outcome: Outcome | BaseException) -> None:
        _tell(ties, present, waiter, worker_ids, outcome, release)

    waiter = ties.coordinator.arrive_together(arrival, group.task_id, requests, tell)
    if waiter is None:
        return False
    for tie, _, request_id in arriving:
        tie.waiters[request_id] = waiter
    return True


def _tell(
    ties: Ties,
    present: Mapping[str, RankTie],
    waiter: Waiter,
    worker_ids: Sequence[str],
    outcome: Outcome | BaseException,
    release: Release,
) -> None:
    if not isinstance(outcome, BarrierReleased):
        for worker_id in worker_ids:
            present[worker_id].on_outcome(waiter, (worker_id,), outcome)
        return
    ties.state.barriers.collected(waiter.key, worker_ids)
    told = list(map(present.__getitem__, worker_ids))
    request_ids = list(map(waiter.requests.__getitem__, worker_ids))
    for tie, request_id in zip(told, request_ids, strict=True):
        tie.waiters.pop(request_id, None)
    release(outcome, told, worker_ids, request_ids)
