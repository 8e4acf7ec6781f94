"""Which cards ranks may have, who gets which, and what a rank is told: no card is ever two ranks'."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.agent.gpus import card_environment, pick_cards, visible_cards
from strata.agent.rank_files import RankFiles, RankKey, RankRecord

_UUIDS = ["GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"]


@pytest.mark.parametrize(
    ("outer", "cards"),
    [
        (None, {0: "0", 1: "1", 2: "2", 3: "3"}),
        ("2,0", {2: "2", 0: "0"}),
        (" 1 , GPU-bb33 ", {1: "1", 2: "GPU-bb33"}),
        ("GPU-b", {2: "GPU-b"}),
        ("", {}),
        ("-1", {}),
        ("NoDevFiles", {}),
        ("0,7,1", {0: "0"}),  # CUDA stops at what it does not know
        ("GPU-aa,1", {}),  # two cards begin like this
        ("1,1,2", {1: "1"}),
        ("0,99999999999999999999", {0: "0"}),
        ("MIG-aa11", {}),
    ],
)
def test_an_outer_list_says_which_cards_there_are(outer: str | None, cards: dict[int, str]) -> None:
    found = visible_cards(_UUIDS, outer)
    assert found == cards
    assert list(found) == list(cards)


def test_a_card_that_does_not_answer_is_nobodys() -> None:
    assert visible_cards(["GPU-a", "", "GPU-c"], None) == {0: "0", 2: "2"}
    assert visible_cards(["GPU-a", "", "GPU-c"], "1,2") == {2: "2"}


def test_one_card_each_is_at_the_local_rank_and_several_are_alone() -> None:
    cards = visible_cards(_UUIDS, None)
    assert card_environment(cards, [], [[], []]) == {}
    one = card_environment(cards, [1], [[3], [1]])
    assert one == {"CUDA_VISIBLE_DEVICES": "3,1", "STRATA_GPUS": "1"}
    two = card_environment(cards, [2, 3], [[0, 1], [2, 3]])
    assert two == {"CUDA_VISIBLE_DEVICES": "2,3", "STRATA_GPUS": "2,3"}


def test_an_outer_list_is_handed_on_in_its_own_words() -> None:
    told = card_environment(visible_cards(_UUIDS, "GPU-cc44,0"), [3], [[0], [3]])
    assert told == {"CUDA_VISIBLE_DEVICES": "0,GPU-cc44", "STRATA_GPUS": "GPU-cc44"}


def _record(key: RankKey, gpus: list[int], *, ended: bool = False) -> RankRecord:
    task, attempt, rank, life = key
    name = f"{task}-{rank}"
    return RankRecord(
        task_id=task, attempt=attempt, rank=rank, life=life, worker_id=name, incarnation=name, gpus=gpus, ended=ended
    )


def test_a_replaced_rank_has_the_cards_of_the_dead_one() -> None:
    dead, other = ("t", 1, 0, 0), ("t", 1, 1, 0)
    records = {dead: _record(dead, [2, 1], ended=True), other: _record(other, [0, 3])}
    assert pick_cards(range(6), 2, ("t", 1, 0, 1), records, [other, ("t", 1, 0, 1)]) == [1, 2]


def test_a_rank_that_ended_early_keeps_its_card_until_its_attempt_is_over() -> None:
    early, again = ("t", 1, 0, 0), ("t", 1, 1, 1)
    records = {early: _record(early, [0], ended=True)}
    assert pick_cards([0], 1, again, records, [early, again]) == []
    assert pick_cards([0], 1, ("u", 1, 0, 0), records, []) == [0]


def test_the_cards_of_a_rank_are_in_its_file(tmp_path: Path) -> None:
    files = RankFiles(tmp_path)
    files.save(_record(("t", 1, 0, 0), [2, 3]))
    assert [record.gpus for record in RankFiles(tmp_path).load()] == [[2, 3]]


_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.sampled_from("tuv"), st.integers(1, 4), st.integers(0, 3)),
        st.tuples(st.just("replace"), st.sampled_from("tuv"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("end"), st.sampled_from("tuv"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("forget"), st.sampled_from("tuv"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(st.integers(0, 8), _EVENTS)
def test_no_card_is_ever_two_ranks(cards: int, events: list[tuple[str, str, int, int]]) -> None:
    """Over any course of starts, deaths, replacements and ends, as `Ranks` goes through it."""
    records: dict[RankKey, RankRecord] = {}
    wanted: dict[RankKey, int] = {}
    attempts: dict[str, int] = {}
    for what, task, number, gpus in events:
        current = {key: key for key in wanted if key[0] == task}
        if what == "start":
            attempts[task] = attempts.get(task, 0) + 1
            for key in current:
                del wanted[key]
            wanted |= {(task, attempts[task], rank, 0): gpus for rank in range(number)}
        elif what == "forget":
            for key in current:
                del wanted[key]
        else:
            for key in [key for key in current if key[2] == number]:
                if key in records:
                    records[key].ended = True
                if what == "replace":
                    wanted[(key[0], key[1], key[2], key[3] + 1)] = wanted.pop(key)
        for key in [key for key in wanted if key not in records]:
            picked = pick_cards(range(cards), wanted[key], key, records, wanted)
            assert len(picked) in (0, wanted[key])
            records[key] = _record(key, picked, ended=len(picked) < wanted[key])
        _check_alone(records)
        for key in [key for key, record in records.items() if key not in wanted and record.ended]:
            del records[key]


def _check_alone(records: Mapping[RankKey, RankRecord]) -> None:
    held = [card for record in records.values() if not record.ended for card in record.gpus]
    assert len(held) == len(set(held))
