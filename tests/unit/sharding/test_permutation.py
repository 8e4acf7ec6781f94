"""The permutation is a bijection, looks random, and is frozen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from strata.sharding.permutation import ROUNDS, SMALL, Permutation, _add, _scaled, permute_many


def inverse(permutation: Permutation, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The way back, round by round: where it exists, no two positions have one value."""
    if permutation._table is not None:
        return np.argsort(permutation._table, kind="stable")[values]
    found = values.astype(np.uint64)
    outside = np.arange(len(found))
    while outside.size:
        found[outside] = _backward(permutation, found[outside])
        outside = outside[found[outside] >= permutation.size]
    return found.astype(np.int64)


def _backward(permutation: Permutation, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    radix_left, radix_right = np.uint64(permutation._left), np.uint64(permutation._right)
    left, right = np.divmod(values, radix_right)
    for number in range(ROUNDS - 2, -1, -2):
        right = _add(right, radix_right - _scaled(left, permutation._rounds[number + 1], radix_right), radix_right)
        left = _add(left, radix_left - _scaled(right, permutation._rounds[number], radix_left), radix_left)
    return left * radix_right + right


def test_golden_vectors() -> None:
    assert Permutation(10, 1).all().tolist() == [8, 0, 6, 7, 9, 4, 2, 5, 1, 3]
    assert Permutation(1024, 1)(np.arange(6)).tolist() == [111, 906, 498, 343, 514, 208]
    billion = Permutation(10**9, 7)(np.array([0, 1, 2, 999_999_999]))
    assert billion.tolist() == [82136587, 847395526, 657214863, 595001697]
    huge = Permutation(2**61 - 1, 7)(np.array([0, 1, 2**60]))
    assert huge.tolist() == [1846843381493987227, 923853795517512376, 478487790916671470]


@given(size=st.integers(0, 5000), key=st.integers(0, 2**64 - 1))
def test_bijective_and_inverse(size: int, key: int) -> None:
    permutation = Permutation(size, key)
    values = permutation.all()
    assert np.array_equal(np.sort(values), np.arange(size))
    assert np.array_equal(inverse(permutation, values), np.arange(size))


@given(size=st.integers(1, 2**61), key=st.integers(0, 2**64 - 1), data=st.data())
def test_random_access_at_any_size(size: int, key: int, data: st.DataObject) -> None:
    positions = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=20)), dtype=np.int64)
    if size < 1024:
        return  # covered above; such sizes are built as a whole
    permutation = Permutation(size, key)
    assert np.array_equal(inverse(permutation, permutation(positions)), positions)


def test_positions_outside_are_refused() -> None:
    with pytest.raises(IndexError, match="5000"):
        Permutation(5000, 1)(np.array([5000]))


@pytest.mark.parametrize("size", [97, 1000, 1024, 1999, 5000])
def test_neighbours_stay_neighbours_as_often_as_by_chance(size: int) -> None:
    """Adjacency z-score over 400 keys. A Feistel network of 4 rounds scores 196 at n=97; chance stays below 4."""
    kept = sum(int(np.count_nonzero(np.diff(Permutation(size, key).all()) == 1)) for key in range(400))
    expected = 400 * (size - 1) / size
    assert abs(kept - expected) / expected**0.5 < 4


def test_every_value_is_equally_likely_at_every_position() -> None:
    """Chi-square of where position 0 lands, 64 cells, 4,000 keys: the 99.99 % quantile for 63 degrees is about 113."""
    cells = np.bincount([int(Permutation(2048, key)(np.array([0]))[0]) // 32 for key in range(4000)], minlength=64)
    assert float(((cells - 62.5) ** 2 / 62.5).sum()) < 113


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    sizes = [1, 5, SMALL - 1, SMALL, SMALL + 1, 10_007, 80_000, 10**9, 1 << 40]
    permutations = [Permutation(size, 3 + size) for size in sizes]
    positions = [np.unique(np.linspace(0, size - 1, 200).astype(np.int64)) for size in sizes]
    counts = [len(part) for part in positions]
    found = permute_many(permutations, counts, np.concatenate(positions))
    one_by_one = [permutation(part) for permutation, part in zip(permutations, positions, strict=True)]
    assert np.array_equal(found, np.concatenate(one_by_one))
