"""A loader's batches, epoch after epoch, from where they were."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from strata.errors import InvalidArgument
from strata.worker.training.batches import Batches


class Counter:
    """A loader of `size` numbers, which remembers its place."""

    def __init__(self, size: int) -> None:
        self.size, self.place = size, 0

    def __iter__(self) -> Iterator[int]:
        while self.place < self.size:
            self.place += 1
            yield self.place
        self.place = 0

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.place = state["place"]


def test_it_ends_after_so_many_epochs() -> None:
    batches = Batches(Counter(3), 1)
    assert list(batches.until(2)) == [1, 2, 3, 1, 2, 3]
    assert batches.epoch == 2


@pytest.mark.parametrize("taken", range(7))
def test_it_goes_on_where_it_was(taken: int) -> None:
    first = Batches(Counter(3), 1)
    begun = list(islice(first.until(2), taken))
    second = Batches(Counter(3), 1)
    second.load_state_dict(first.state_dict())
    assert begun + list(second.until(2)) == [1, 2, 3, 1, 2, 3]


def test_an_empty_loader_is_no_endless_loop() -> None:
    with pytest.raises(InvalidArgument, match="no batch in a whole epoch"):
        next(Batches(Counter(0), 1).until(None))


def test_a_loader_that_cannot_say_where_it_is_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidArgument, match=r"loader is a builtins\.list without state_dict"):
        Batches([1, 2], 1)


def test_places_of_other_ranks_are_no_place() -> None:
    saved = Batches(Counter(3), 2).state_dict()
    with pytest.raises(InvalidArgument, match="2 ranks saved where their Counters were, now there are 3"):
        Batches(Counter(3), 3).load_state_dict(saved)
