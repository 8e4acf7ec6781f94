"""Whether a run is what a query asks for: a tree of the query and a way to look values up become one test. Pure."""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from strata.observatory.search.query import And, Compare, Node, Not, Or, Words

__all__ = ["Lookup", "is_known", "matcher", "order_of"]

# The value of a key for a run; None when the run has none.
Lookup = Callable[[str], Callable[[str], Any]]
Test = Callable[[str], bool]


def matcher(node: Node, lookup: Lookup, words: Callable[[str], str]) -> Test:
    """A run that has no such value matches no comparison with it. `words` is the text, in small letters, in which bare
    words are sought."""
    match node:
        case Words(text=text):
            needle = text.lower()
            return lambda run: needle in words(run)
        case Compare():
            return _comparison(node, lookup(node.key))
        case Not(part=part):
            inner = matcher(part, lookup, words)
            return lambda run: not inner(run)
        case And(parts=parts):
            tests = [matcher(part, lookup, words) for part in parts]
            return lambda run: all(test(run) for test in tests)
        case Or(parts=parts):
            tests = [matcher(part, lookup, words) for part in parts]
            return lambda run: any(test(run) for test in tests)


def order_of(value: Any) -> tuple[int, Any]:
    """A key to sort by: numbers by size, then texts by letters."""
    number = _number(value)
    return (1, _text(value)) if number is None else (0, number)


def is_known(value: Any) -> bool:
    return not (value is None or (isinstance(value, float) and math.isnan(value)))


def _comparison(wanted: Compare, values: Callable[[str], Any]) -> Test:
    fits = _fits(wanted)

    def test(run: str) -> bool:
        value = values(run)
        if not is_known(value):
            return False
        if isinstance(value, list):
            found = any(fits(item) for item in value if is_known(item))
            return found if wanted.op != "!=" else all(fits(item) for item in value)
        return fits(value)

    return test


def _fits(wanted: Compare) -> Callable[[Any], bool]:
    number, text = wanted.number, wanted.value.lower()
    if wanted.op in (">", ">=", "<", "<="):
        return _by_size(wanted.op, number, wanted.value)
    if wanted.op == "~":
        return lambda value: text in _text(value)
    if wanted.op == ":" and "*" in text:
        pattern = re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
        return lambda value: pattern.fullmatch(_text(value)) is not None

    def equal(value: Any) -> bool:
        own = _number(value) if number is not None else None
        return own == number if own is not None else _text(value) == text

    return (lambda value: not equal(value)) if wanted.op == "!=" else equal


def _by_size(op: str, number: float | None, text: str) -> Callable[[Any], bool]:
    """Numbers with numbers, texts (dates, versions) with texts; the two have no order."""
    signs: Iterable[int] = {">": (1,), ">=": (1, 0), "<": (-1,), "<=": (-1, 0)}[op]
    other: Any = text.lower() if number is None else number

    def fits(value: Any) -> bool:
        own = _number(value) if number is not None else (_text(value) if isinstance(value, str) else None)
        return own is not None and ((own > other) - (own < other)) in signs

    return fits


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value  # an int as it is: Python compares beyond 2**53 exactly
    if isinstance(value, str):  # to_shown says large numbers and infinities as text
        try:
            found = float(value)
        except ValueError:
            return None
        return None if math.isnan(found) else found
    return None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).lower()
