"""The query language: every query is read into its tree, and every wrong text is refused with its place."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.errors import InvalidArgument
from strata.observatory.search.query import And, Compare, Node, Not, Or, Words, names_in, parse

Asked = tuple[str, Node]  # a query, and the tree that it must be read into


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _joined(word: str, kind: type[And | Or], parts: list[Asked]) -> Asked:
    return f" {word} ".join(f"({text})" for text, _ in parts), kind(tuple(node for _, node in parts))


_OPS = st.sampled_from(["=", "!=", ">", ">=", "<", "<=", "~", ":"])
_PLAIN = st.from_regex(r"[a-z0-9./_*-]{1,8}", fullmatch=True).filter(lambda word: word not in ("and", "or", "not"))
_TERMS = st.text(max_size=20).map(lambda text: (_quoted(text), text)) | _PLAIN.map(lambda word: (word, word))
_LEAVES = _TERMS.map(lambda term: (term[0], Words(term[1]))) | st.builds(
    lambda key, op, value: (f"{key[0]} {op} {value[0]}", Compare(key[1], op, value[1])), _TERMS, _OPS, _TERMS
)


def _nested(inner: st.SearchStrategy[Asked]) -> st.SearchStrategy[Asked]:
    some = st.lists(inner, min_size=2, max_size=3)
    inverted = inner.map(lambda asked: (f"not ({asked[0]})", Not(asked[1])))
    return (
        inverted
        | st.builds(_joined, st.just("and"), st.just(And), some)
        | st.builds(_joined, st.just("or"), st.just(Or), some)
    )


@given(st.recursive(_LEAVES, _nested, max_leaves=12))
def test_every_query_is_read_into_its_tree(asked: Asked) -> None:
    text, node = asked
    assert parse(text) == node


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
