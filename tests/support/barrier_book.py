"""What ranks did at barriers, and how these ended: every answer is checked against both."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from strata.cluster.events import BarrierBroke, BarrierReleased, Event, MembersLost
from strata.coordinator.state.outcomes import requests_of
from strata.errors import BarrierBroken, Fenced, StrataError
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["BARRIERS", "SIZE", "Arrival", "Book", "Told", "key_of"]

SIZE = 8
"""Of the group."""
BARRIERS = [
    pb.BarrierRequest(barrier_id="all"),
    pb.BarrierRequest(barrier_id="all", step=1),
    pb.BarrierRequest(barrier_id="named", expected_participants=SIZE),
    pb.BarrierRequest(barrier_id="half", expected_participants=SIZE // 2),
    pb.BarrierRequest(barrier_id="three", expected_participants=3),
    pb.BarrierRequest(barrier_id="wait", policy=pb.BarrierRequest.WAIT),
    pb.BarrierRequest(barrier_id="shrink", policy=pb.BarrierRequest.SHRINK),
    pb.BarrierRequest(barrier_id="shrink", step=1, expected_participants=5, policy=pb.BarrierRequest.SHRINK),
]

Told = pb.BarrierResponse | StrataError
Key = tuple[str, int]


def key_of(named: pb.BarrierRequest | BarrierReleased | BarrierBroke) -> Key:
    return named.barrier_id, named.step


@dataclass(eq=False)
class Arrival:
    """One call, as the book has it. `after` is how many ends were known before it, and `gone_at` how many when it was
    told, or the coordinator had heard for sure that it was given up."""

    worker_id: str
    request: pb.BarrierRequest
    after: int
    told: list[Told] = field(default_factory=list)
    withdrawn: bool = False
    gone_at: float = math.inf

    @property
    def key(self) -> Key:
        return key_of(self.request)

    @property
    def waits(self) -> bool:
        return not self.told and not self.withdrawn


class Book:
    """`ends` are those that became durable, in order."""

    def __init__(self) -> None:
        self.ends: list[BarrierReleased | BarrierBroke] = []
        self.arrivals: list[Arrival] = []
        self._dead: dict[tuple[str, str], int] = {}  # worker and request → how many ends were known at its loss

    def on_event(self, event: Event) -> None:
        if isinstance(event, BarrierReleased | BarrierBroke):
            self.ends.append(event)
        elif isinstance(event, MembersLost):
            for item in self.arrivals:
                if item.worker_id in event.worker_ids:
                    self._dead.setdefault((item.worker_id, item.request.request_id), len(self.ends))

    def check(self, living: Iterable[Arrival], fenced: Iterable[Arrival]) -> None:
        """Of processes that are there to the end, of those that lost their place and heard so, and of all others."""
        self._check_ends()
        told = pb.BarrierResponse | BarrierBroken
        for arrivals, fine in ((living, told), (fenced, told | Fenced)):
            for arrival in arrivals:
                assert len(arrival.told) == 1 or (arrival.withdrawn and not arrival.told), arrival
                assert all(isinstance(item, fine) for item in arrival.told), arrival
        for arrival in self.arrivals:
            for item in arrival.told:
                if isinstance(item, pb.BarrierResponse):
                    self._check_release(arrival, item)
                elif isinstance(item, BarrierBroken):
                    self._check_break(arrival, item)

    def _check_ends(self) -> None:
        said = {(item.worker_id, item.request.request_id): item for item in self.arrivals}
        assert len(said) == len(self.arrivals), "a request was used twice"
        counted: set[tuple[str, str]] = set()
        for number, end in enumerate(self.ends):
            pairs = requests_of(end).items()
            assert len(pairs) == len(end.worker_ids) == len(set(end.worker_ids)), end
            for pair in pairs:
                arrival = said[pair]
                assert key_of(end) == arrival.key, end
                assert pair not in counted, (pair, end)
                assert self._dead.get(pair, number) >= number or isinstance(end, BarrierBroke), (pair, end)
                assert self._counts(arrival, number), (arrival, end)
                assert number >= arrival.after
                counted.add(pair)
            if isinstance(end, BarrierBroke):
                assert end.missing, end
                continue
            size = next(terms.expected_participants or SIZE for terms in BARRIERS if key_of(terms) == key_of(end))
            assert len({*end.worker_ids, *end.absent}) == len(end.worker_ids) + len(end.absent) == size, end
            assert not end.absent or end.barrier_id == "shrink", end

    def _counts(self, arrival: Arrival, number: int) -> bool:
        """Whether the rank may be in this end: it has not given up, or has with one of its threads only."""
        threads = [item for item in self.arrivals if (item.worker_id, item.key) == (arrival.worker_id, arrival.key)]
        return any(item.after <= number <= item.gone_at for item in threads)

    def _check_release(self, arrival: Arrival, told: pb.BarrierResponse) -> None:
        """It is of one of the ends since the arrival, and the place is the rank's own in it."""
        found = [end for end in self._ends_of(arrival) if isinstance(end, BarrierReleased)]
        assert any(
            end.worker_ids[told.arrival_order - 1] == arrival.worker_id and len(end.worker_ids) == told.participants
            for end in found
        ), (arrival, found)

    def _check_break(self, arrival: Arrival, told: BarrierBroken) -> None:
        found = [end for end in self._ends_of(arrival) if isinstance(end, BarrierBroke)]
        assert any(end.missing == told.missing for end in found), (arrival, found)

    def _ends_of(self, arrival: Arrival) -> list[BarrierReleased | BarrierBroke]:
        """Which have its request; or, if the rank came there with a later one, too, any of its own."""
        own = [
            end
            for end in self.ends[arrival.after :]
            if key_of(end) == arrival.key and arrival.worker_id in end.worker_ids
        ]
        exact = [end for end in own if requests_of(end)[arrival.worker_id] == arrival.request.request_id]
        return exact or own
