"""One metric over ranks and steps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strata.observatory.live.heat import HeatPicture

EVERY = (-(1 << 62), 1 << 62)


def put(picture: HeatPicture, step: int, *values: float, over: bool = True) -> None:
    picture.put(range(len(values)), np.full(len(values), step), np.array(values, np.float64), over=over)


def test_a_row_shows_its_rank_that_is_farthest_from_the_median() -> None:
    picture = HeatPicture(6)
    put(picture, 10, 1.0, 1.0, 1.0, 4.0, 0.125, 1.5)
    rows = picture.rows(3, *EVERY)
    assert (rows.first_ranks, rows.last_ranks) == ([0, 2, 4], [1, 3, 5])
    (column,) = picture.columns(rows, -1)
    assert (column.step, column.median, column.top_rank, column.top_ratio) == (10, 1.0, 3, 4.0)
    assert column.ratios == [100, 400, 12]
    deeper = picture.rows(10, 2, 3)
    assert (deeper.first_ranks, picture.columns(deeper, -1)[0].ratios) == ([2, 3], [100, 400])


def test_a_picture_of_nobody_has_no_rows() -> None:
    empty, known = HeatPicture(0), HeatPicture(2)
    put(known, 1, 1.0, 1.0)
    for picture, ranks in ((empty, EVERY), (known, (7, 9))):
        rows = picture.rows(3, *ranks)
        assert (rows.first_ranks, rows.last_ranks) == ([], [])
        assert all(column.ratios == [] for column in picture.columns(rows, -1))


def test_only_what_changed_is_told_again() -> None:
    picture = HeatPicture(2)
    put(picture, 1, 1.0, 1.0)
    put(picture, 2, 1.0)
    seen, rows = picture.version, picture.rows(2, *EVERY)
    assert [column.ratios for column in picture.columns(rows, -1)] == [[100, 100], [100, None]]
    put(picture, 2, 1.0, 3.0)
    assert [column.step for column in picture.columns(rows, seen)] == [2]


def test_odd_values_hide_no_others() -> None:
    picture = HeatPicture(4)
    put(picture, 1, float("nan"), float("inf"), 2.0, 2.0)
    put(picture, 2, 0.0, 0.0, 0.0, 5.0)
    put(picture, 3, float("nan"), float("nan"), float("nan"), float("nan"))
    columns = picture.columns(picture.rows(4, *EVERY), -1)
    assert [column.ratios for column in columns] == [[None, None, 100, 100], [None] * 4, [None] * 4]
    assert [column.median for column in columns] == [2.0, 0.0, None]
    assert [column.top_rank for column in columns] == [2, 3, None]


def test_what_the_store_has_is_put_beneath_what_came_live() -> None:
    picture = HeatPicture(2)
    put(picture, 5, 3.0)
    put(picture, 5, 1.0, 1.0, over=False)
    (column,) = picture.columns(picture.rows(2, *EVERY), -1)
    assert column.top_ratio == 1.5


def test_steps_that_are_done_again_leave() -> None:
    picture = HeatPicture(2)
    for step in range(10):
        put(picture, step, 1.0, 1.0)
    picture.cut(4)
    assert picture.steps() == [0, 1, 2, 3]


def test_the_newest_steps_stay_and_a_new_beginning_is_one() -> None:
    picture = HeatPicture(2)
    for step in range(1000, 1000 + 2 * picture.max_steps):
        put(picture, step, 1.0, 1.0)
    assert len(picture.steps()) == picture.max_steps
    put(picture, 3, 1.0)  # one that is late
    assert 3 not in picture.steps()
    put(picture, 4, 1.0, 1.0)
    assert picture.steps() == [4]


def test_many_ranks_have_fewer_steps() -> None:
    assert HeatPicture(10_000).max_steps * 10_000 < 2_000_000
    assert HeatPicture(0).rows(10, *EVERY).first_ranks == []


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30), st.floats()), max_size=80), st.integers(1, 9))
def test_every_rank_is_in_one_row_and_every_row_says_something_or_nothing(
    points: list[tuple[int, int, float]], most: int
) -> None:
    picture = HeatPicture(3)
    for rank, step, value in points:
        picture.put([rank], np.array([step]), np.array([value]))
    rows = picture.rows(most, *EVERY)
    assert len(rows.starts) == min(most, len({rank for rank, _, _ in points}))
    for column in picture.columns(rows, -1):
        assert len(column.ratios) == len(rows.starts)
