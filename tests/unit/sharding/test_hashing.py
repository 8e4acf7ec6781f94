"""Hashes are part of the stored format: these numbers may never change."""

import numpy as np
import pytest

from strata.sharding.hashing import derive_key, hash_ints, hash_name, hash_order, mix64


def test_mix64_is_splitmix64() -> None:
    # The first value is the published first output of splitmix64 with seed 0.
    assert mix64(np.array([0, 1, 2**63], dtype=np.uint64)).tolist() == [
        0xE220A8397B1DCDAF,
        0x910A2DEC89025CC1,
        0x481EC0A212A9F3DB,
    ]


def test_golden_vectors() -> None:
    assert hash_ints(np.array([0, 1, 2**63], dtype=np.uint64), 42).tolist() == [
        0x4D9B3F1EC9CF6B1B,
        0x7EB3B394AC9EFC29,
        0x7CA22D41DD6CB57D,
    ]
    assert hash_name("worker-01") == 0xB190725AA639311A
    assert hash_name("é") == 0x2F19F3EF8BBF1ACB
    assert derive_key("a", 1) == 0xC78786C0059475AA
    assert hash_order(8, 42).tolist() == [2, 6, 3, 0, 7, 1, 4, 5]


def test_parts_of_a_key_do_not_run_together() -> None:
    keys = {derive_key("ab", "c"), derive_key("a", "bc"), derive_key("abc"), derive_key(1), derive_key("1")}
    assert len(keys) == 5


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1563, 300_000])
def test_the_order_is_that_of_the_hashes(count: int) -> None:
    """300,000 have pairs that agree in their high 32 bits: the quick passes alone do not put them in order."""
    hashes = hash_ints(np.arange(count, dtype=np.uint64), 7)
    high = np.sort(hashes >> np.uint64(32))
    assert (count < 300_000) or (high[1:] == high[:-1]).any()
    assert np.array_equal(hash_order(count, 7), np.argsort(hashes, kind="stable"))
