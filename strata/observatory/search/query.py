"""The query language of the runs page: `lr > 1e-4 and tag:ablation and not state:failed`, read into a tree. Pure.

A query is read once, here; what is wrong with it is said with its place.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from strata.errors import InvalidArgument

__all__ = ["And", "Compare", "Node", "Not", "Op", "Or", "Words", "names_in", "parse"]

Op = Literal["=", "!=", ">", ">=", "<", "<=", "~", ":"]
_MAX_QUERY = 2_000
_MAX_DEPTH = 50
_HINT = 'Examples: lr > 1e-4 and tag:ablation, group:x or not state:failed, "val loss".min < 0.5.'
_TOKEN = re.compile(
    r"""\s*(?:(?P<op>>=|<=|!=|==|[><=~:])|(?P<paren>[()])|"(?P<quoted>(?:[^"\\]|\\.)*)"(?P<tail>(?:\.\w+)?)"""
    r"""|(?P<word>[^\s()<>=!~:"]+))"""
)


@dataclass(frozen=True, slots=True)
class Words:
    """A text that stands in the run's id, name, notes, tags, group or project."""

    text: str


@dataclass(frozen=True, slots=True)
class Compare:
    """`number` is the value as one, None when it is none."""

    key: str
    op: Op
    value: str

    @property
    def number(self) -> float | None:
        try:
            found = float(self.value)
        except ValueError:
            return None
        return None if math.isnan(found) else found


@dataclass(frozen=True, slots=True)
class Not:
    part: "Node"


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple["Node", ...]


Node = Words | Compare | Not | And | Or


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # op, paren, word, quoted or end
    text: str
    place: int

    def says(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


def parse(text: str) -> Node:
    """The tree of a query; an empty one lets everything through. Raises InvalidArgument that says where."""
    if len(text) > _MAX_QUERY:
        raise InvalidArgument(f"the filter has {len(text)} characters, at most {_MAX_QUERY} are read")
    reader = _Reader(_tokens(text))
    if reader.next.kind == "end":
        return And(())
    node = reader.either(0)
    if reader.next.kind != "end":
        raise _wrong(reader.next, "closes nothing")
    return node


def names_in(node: Node) -> set[str]:
    """Every key that a query compares."""
    match node:
        case Compare(key=key):
            return {key}
        case Not(part=part):
            return names_in(part)
        case And(parts=parts) | Or(parts=parts):
            return set().union(*map(names_in, parts))
    return set()


class _Reader:
    """One token after the other; `or` binds less than `and`, which may be left out."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> _Token:
        return self._tokens[self._at]

    def take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def either(self, depth: int) -> Node:
        parts = [self.every(depth)]
        while self.next.says("or"):
            self.take()
            parts.append(self.every(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def every(self, depth: int) -> Node:
        parts = [self.one(depth)]
        while not (self.next.kind == "end" or self.next.text == ")" or self.next.says("or")):
            if self.next.says("and"):
                self.take()
            parts.append(self.one(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def one(self, depth: int) -> Node:
        token = self.take()
        if depth > _MAX_DEPTH:
            raise _wrong(token, f"is nested deeper than {_MAX_DEPTH} levels")
        if token.says("not"):
            return Not(self.one(depth + 1))
        if token.kind == "paren" and token.text == "(":
            inside = self.either(depth + 1)
            if self.take().text != ")":
                raise _wrong(token, "is not closed")
            return inside
        if token.kind not in ("word", "quoted") or token.says("and") or token.says("or"):
            raise _wrong(token, "stands where a name, a word or ( is expected")
        if self.next.kind != "op":
            return Words(token.text)
        op = self.take()
        value = self.take()
        if value.kind not in ("word", "quoted"):
            raise _wrong(value, f"stands where the value after {op.text} is expected")
        return Compare(token.text, "=" if op.text == "==" else op.text, value.text)  # type: ignore[arg-type]  # an Op


def _tokens(text: str) -> list[_Token]:
    found, at = list[_Token](), 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            what = "opens a quotation that is not closed" if text[place] == '"' else "means nothing here"
            raise _wrong(_Token("word", text[place], place), what)
        kind = match.lastgroup if match.lastgroup != "tail" else "quoted"
        place = match.end() - len(match[0].lstrip())
        word = match[kind or ""]
        if kind == "quoted":
            word = re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) + match["tail"]
        found.append(_Token(kind or "", word, place))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


def _wrong(token: _Token, what: str) -> InvalidArgument:
    subject = "its end" if token.kind == "end" else repr(token.text[:40])
    return InvalidArgument(f"the filter cannot be read at character {token.place + 1}: {subject} {what}", hint=_HINT)
