"""Ranks in a sentence: "rank 3", "ranks 0-7, 16 and 12 more". Ten thousand of them must not become a wall."""

from collections.abc import Iterable, Iterator
from itertools import islice

__all__ = ["ranks_text"]

_NAMED = 8  # numbers or ranges that are named
_RANGE = 3  # "4, 5" reads better than "4-5"


def ranks_text(ranks: Iterable[int]) -> str:
    """The first of them, in order, and how many more there are."""
    ordered = sorted(ranks)
    named = list(islice(_stretches(ordered), _NAMED))
    names = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in named)
    left = len(ordered) - sum(last - first + 1 for first, last in named)
    more = f" and {left} more" if left else ""
    return f"{'rank' if len(ordered) == 1 else 'ranks'} {names}{more}"


def _stretches(ordered: list[int]) -> Iterator[tuple[int, int]]:
    """Consecutive ones as (first, last); two that stand side by side are told apart."""
    place = 0
    while place < len(ordered):
        end = place + 1
        while end < len(ordered) and ordered[end] == ordered[end - 1] + 1:
            end += 1
        if end - place < _RANGE:
            yield from ((rank, rank) for rank in ordered[place:end])
        else:
            yield ordered[place], ordered[end - 1]
        place = end
