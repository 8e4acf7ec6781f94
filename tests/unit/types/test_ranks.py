"""Ranks in a sentence."""

import pytest

from strata.types.ranks import ranks_text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([5, 4], "ranks 4, 5"),
        ([0, 1, 2, 7, 9, 10], "ranks 0-2, 7, 9, 10"),
        (range(10_000), "ranks 0-9999"),
        (range(0, 20, 2), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 2 more"),
        ([*range(0, 80, 10), *range(90, 100)], "ranks 0, 10, 20, 30, 40, 50, 60, 70 and 10 more"),
        ([0, 2, 4, 6, 8, 10, 12, 14, 15], "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 1 more"),
    ],
)
def test_neighbours_are_a_range_and_the_rest_is_counted(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text
