"""What a rank remembers between two commits, and what it hands on."""

import random
from typing import Any

import numpy as np
import pytest

from strata.errors import InvalidArgument
from strata.worker.elastic.keepers import CopyKeeper, RandomKeeper
from strata.worker.elastic.memory import NOTHING, Memory


class Part:
    def __init__(self, value: float) -> None:
        self.value = np.array([value])

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = np.array(state["value"])


class Live:
    """A part that is not copied: it is clean until somebody steps."""

    def __init__(self, _: str, part: Part) -> None:
        self.part = part
        self.clean = True

    def commit(self) -> None:
        self.clean = True

    def rewind(self) -> None: ...

    def state(self) -> Any:
        return self.part.state_dict()

    def load(self, state: Any) -> None:
        self.part.load_state_dict(state)


def _memory(**parts: Part) -> Memory:
    memory = Memory(CopyKeeper, {"python": RandomKeeper()})
    memory.hold(parts)
    return memory


def test_before_the_first_commit_there_is_nothing_to_offer() -> None:
    assert _memory(model=Part(1)).offered_step == NOTHING


def test_half_a_step_is_forgotten() -> None:
    part = Part(1)
    memory = _memory(model=part)
    memory.commit(7)
    part.value[:] = 99
    memory.rewind()
    assert (part.value.tolist(), memory.offered_step) == ([1.0], 7)
    part.value[:] = 98  # again: what was kept is not what the part has now
    memory.rewind()
    assert part.value.tolist() == [1.0]


def test_random_numbers_are_drawn_again() -> None:
    memory = _memory(model=Part(1))
    memory.commit(1)
    drawn = (random.random(), np.random.rand())
    memory.rewind()
    assert (random.random(), np.random.rand()) == drawn


def test_new_objects_take_over_what_the_old_ones_held() -> None:
    memory = _memory(model=Part(1))
    memory.commit(7)
    anew = Part(5)
    memory.hold({"model": anew})
    assert (anew.value.tolist(), memory.offered_step) == ([1.0], 7)


def test_other_names_are_another_state() -> None:
    memory = _memory(model=Part(1))
    memory.commit(7)
    memory.hold({"model": Part(1), "loader": Part(2)})
    assert memory.offered_step == NOTHING


def test_a_rank_in_the_middle_of_a_step_offers_nothing_and_its_new_objects_neither() -> None:
    part = Part(1)
    memory = Memory(Live, {})
    memory.hold({"model": part})
    memory.commit(7)
    live = memory._keepers["model"]
    assert isinstance(live, Live)
    live.clean = False
    assert memory.offered_step == NOTHING
    memory.hold({"model": Part(5)})
    assert memory.offered_step == NOTHING


def test_a_newcomer_gets_the_state_and_numbers_of_its_own() -> None:
    giver, taker = _memory(model=Part(3)), _memory(model=Part(0))
    giver.commit(4)
    taker.load(giver.state())
    taker.seed(hash((4, 1, 1)))
    taker.commit(4)
    assert taker.state()["model"]["value"].tolist() == [3.0]


@pytest.mark.parametrize("part", [None, 3, {"a": 1}, object()])
def test_what_has_no_state_dict_is_refused_by_name(part: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"model is a .* without state_dict"):
        _memory(model=part)
