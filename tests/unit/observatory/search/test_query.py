"""The query language: every tree is read back from its own text, and every wrong text is refused with its place."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.errors import InvalidArgument
from strata.observatory.search.query import And, Compare, Node, Not, Or, Words, names_in, parse, unparse

_OPS = st.sampled_from(["=", "!=", ">", ">=", "<", "<=", "~", ":"])
_TEXT = st.text(max_size=20)
_LEAVES = st.builds(Words, _TEXT) | st.builds(Compare, _TEXT, _OPS, _TEXT)


def _some(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[tuple[Node, ...]]:
    return st.lists(inner, min_size=2, max_size=3).map(tuple)


NODES: st.SearchStrategy[Node] = st.recursive(
    _LEAVES,
    lambda inner: st.builds(Not, inner) | st.builds(And, _some(inner)) | st.builds(Or, _some(inner)),
    max_leaves=12,
)


@given(NODES)
def test_a_tree_is_read_back_from_its_own_text(node: Node) -> None:
    assert parse(unparse(node)) == node


@given(st.text(max_size=60) | st.text("ab()<>=!~: \"\\.'0", max_size=40))
def test_any_text_is_read_or_refused_at_a_place_inside_it(text: str) -> None:
    try:
        parse(text)
    except InvalidArgument as error:
        place = re.search(r"character (\d+)", error.message)
        assert place is not None
        assert 1 <= int(place[1]) <= len(text) + 1


def test_the_query_of_the_documentation() -> None:
    node = parse("lr > 1e-4 and tag:ablation and group:x and state:failed")
    assert node == And(
        (
            Compare("lr", ">", "1e-4"),
            Compare("tag", ":", "ablation"),
            Compare("group", ":", "x"),
            Compare("state", ":", "failed"),
        )
    )
    assert names_in(node) == {"lr", "tag", "group", "state"}


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("", And(())),
        ("  ", And(())),
        ("resnet", Words("resnet")),
        ('"two words"', Words("two words")),
        ("a=1 b=2", And((Compare("a", "=", "1"), Compare("b", "=", "2")))),
        ("a == 1 OR b=2 AND c=3", Or((Compare("a", "=", "1"), And((Compare("b", "=", "2"), Compare("c", "=", "3")))))),
        ("not a:1", Not(Compare("a", ":", "1"))),
        ("(a:1 or b:2) c:3", And((Or((Compare("a", ":", "1"), Compare("b", ":", "2"))), Compare("c", ":", "3")))),
        ('"val loss".min < 0.5', Compare("val loss.min", "<", "0.5")),
        ("train/loss.min<=-2", Compare("train/loss.min", "<=", "-2")),
        ("lr > and", Compare("lr", ">", "and")),
        ('"and" = "or"', Compare("and", "=", "or")),
    ],
)
def test_how_texts_are_read(text: str, node: Node) -> None:
    assert parse(text) == node


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("lr >", 5, "its end stands where the value after >"),
        ("(a:1", 1, "'(' is not closed"),
        ("a:1)", 4, "')' closes nothing"),
        ("and a", 1, "'and' stands where a name"),
        ('name:"x', 6, "opens a quotation that is not closed"),
        ("a ! b", 3, "'!' means nothing here"),
        ("> 5", 1, "'>' stands where a name"),
        ("not", 4, "its end stands where a name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, place: int, words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse(text)
    assert f"at character {place}:" in refused.value.message
    assert words in refused.value.message
    assert "Examples" in refused.value.hint


def test_a_query_of_ten_thousand_brackets_is_refused_not_recursed_into() -> None:
    for text in ("(" * 1_000 + "a" + ")" * 1_000, "not " * 400 + "a", "x" * 5_000):
        with pytest.raises(InvalidArgument):
            parse(text)
