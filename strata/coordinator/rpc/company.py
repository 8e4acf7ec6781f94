"""Ranks that speak as one, and those of several roads who come in one moment: the same of them, barrier after barrier,
so what is known of them is kept.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain

from strata.cluster.members import Group
from strata.coordinator.rpc.ties import RankTie
from strata.coordinator.state.outcomes import Outcome
from strata.coordinator.state.roll import Roll
from strata.protocol.generated import agents_pb2 as ag

__all__ = ["Company", "Party"]


# Tells a company whose wait with this request has ended, well or not. If its ranks are released, the first of them has
# this place, the next one the next.
Release = Callable[["Company", Outcome, str, int], None]


class Company:
    """Ranks of one group that came by one road and have said their hello. It is good as long as their ties are.
    `release` tells them by that road."""

    __slots__ = ("_numbers", "_release", "group", "names", "party", "release", "task_id", "ties")

    def __init__(self, ties: Sequence[RankTie], release: Release) -> None:
        self._release = release
        self.release = partial(release, self)
        self.ties = ties
        self.task_id = ties[0].task_id
        self.names = [tie.worker_id for tie in ties]
        self.group: Group | None = None  # as it was when each of them was let in
        self.party: Party | None = None  # the last one that it came with
        self._numbers = b""

    def may_act(self, group: Group) -> bool:
        """Whether each was let in when its group was as it is now."""
        if self.group is not group and all(tie.group is group for tie in self.ties):
            self.group = group
        return self.group is group

    def apart(self) -> "list[Company]":
        """Each of its ranks alone."""
        return [Company((tie,), self._release) for tie in self.ties]

    def numbers(self) -> bytes:
        """The numbers of their ties, as Releases have them."""
        if not self._numbers:
            self._numbers = ag.Releases(ties=[tie.number for tie in self.ties]).SerializeToString()
        return self._numbers


class Party:
    """Companies of one group that came in one moment. Who of them was first then says nothing, so when the same ones
    come again they stand as they did before, and nobody looks at a thousand names. `places` has how many stand before
    each company."""

    __slots__ = ("_companies", "_group", "places", "roll")

    def __init__(self, companies: Sequence[Company]) -> None:
        self.roll = Roll(chain.from_iterable([company.names for company in companies]))
        before = accumulate([len(company.names) for company in companies], initial=0)
        self.places = dict(zip(companies, before, strict=False))
        self._companies = frozenset(companies)
        self._group: Group | None = None
        for company in companies:
            company.party = self

    @classmethod
    def of(cls, companies: Sequence[Company]) -> "Party":
        known = companies[0].party
        if known is None or len(known.places) != len(companies) or known._companies != frozenset(companies):
            return cls(companies)
        return known

    def is_usual(self, group: Group) -> bool:
        """Whether all of them may act, and each comes once."""
        if self._group is not group and all(company.may_act(group) for company in self.places):
            self._group = group
        return self._group is group and len(self.roll.workers) == len(self.roll)

    def ties(self) -> Iterator[RankTie]:
        """One rank after the other."""
        return (tie for company in self.places for tie in company.ties)

    def only(self, worker_ids: Collection[str]) -> list[Company]:
        """These of its ranks, each alone: somebody else may stand between their places."""
        names = set(worker_ids)
        return [one for company in self.places for one in company.apart() if one.names[0] in names]
