"""Which rows are new: only when that is certain."""

import math
from collections import Counter

from strata.observatory.history.foreign_rows import OVERLAP_MS, Recent, comparable, pick_new


def test_known_rows_are_taken_out_once_each() -> None:
    known = Counter([(1, 10, 0.5), (2, 20, math.inf)])
    found = [(1, 10, 0.5), (1, 10, 0.5), (2, 20, math.nan), (3, 5, 1.0)]
    assert pick_new(found, known, 20, 2) == [(1, 10, 0.5), (3, 5, 1.0)]


def test_without_knowledge_only_later_rows_count() -> None:
    found = [(1, 10, 0.5), (2, 30, 1.0)]
    assert pick_new(found, None, 20, 1) == [(2, 30, 1.0)]
    assert pick_new(found, None, 20, 2) is None
    assert pick_new(found, Counter(), 20, 1) == [(2, 30, 1.0)]


def test_recent_forgets_what_the_overlap_cannot_reach() -> None:
    recent = Recent()
    recent.add([(1, 1_000, 0.5)])
    recent.add([(2, 1_000 + 3 * OVERLAP_MS, math.nan)])
    assert recent.rows == Counter([comparable((2, 1_000 + 3 * OVERLAP_MS, math.nan))])
