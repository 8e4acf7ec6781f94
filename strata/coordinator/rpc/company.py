"""Ranks that speak as one: the same of them, barrier after barrier, so what is known of them is kept."""

from collections.abc import Sequence
from typing import Protocol

from strata.cluster.members import Group
from strata.coordinator.rpc.ties import RankTie
from strata.coordinator.state.outcomes import Outcome
from strata.protocol.generated import agents_pb2 as ag

__all__ = ["Company", "Road"]


class Road(Protocol):
    """The way by which ties come."""

    def release(self, event: Outcome, request_id: str, company: "Company", place: int) -> None:
        """Tells those whose wait with this request has ended, well or not. If they are released, the first of them has
        this place, the next one the next."""


class Company:
    """Ranks of one group that came by one road and have said their hello. It is good as long as their ties are."""

    __slots__ = ("_numbers", "group", "names", "road", "task_id", "ties")

    def __init__(self, road: Road, ties: Sequence[RankTie]) -> None:
        self.road = road
        self.ties = ties
        self.task_id = ties[0].task_id
        self.names = [tie.worker_id for tie in ties]
        self.group: Group | None = None  # as it was when each of them was let in
        self._numbers = b""

    def may_act(self, group: Group) -> bool:
        """Whether each was let in when its group was as it is now."""
        if self.group is not group and all(tie.group is group for tie in self.ties):
            self.group = group
        return self.group is group

    def numbers(self) -> bytes:
        """The numbers of their ties, as Releases have them."""
        if not self._numbers:
            self._numbers = ag.Releases(ties=[tie.number for tie in self.ties]).SerializeToString()
        return self._numbers
