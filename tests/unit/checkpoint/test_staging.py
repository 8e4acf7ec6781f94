"""The staging pool: reused memory, a hard budget, and no silent waiting unless asked for."""

import threading

import pytest

from strata.checkpoint.staging import StagingPool
from strata.errors import Busy


def test_memory_is_used_again_and_grows_only_for_larger_states() -> None:
    pool = StagingPool(2)
    first = pool.take(100_000, wait=False)
    first[:5] = b"hello"
    pool.give(first)
    again = pool.take(50_000, wait=False)
    assert bytes(again[:5]) == b"hello"  # the very same pages
    pool.give(again)
    assert pool.allocated_bytes == 100_000
    pool.give(pool.take(300_000, wait=False))
    assert pool.allocated_bytes == 300_000
    pool.close()
    assert pool.allocated_bytes == 0


def test_a_second_buffer_exists_only_when_two_overlap_and_a_third_is_refused() -> None:
    pool = StagingPool(2)
    views = [pool.take(1000, wait=False), pool.take(1000, wait=False)]
    with pytest.raises(Busy, match="still being written"):
        pool.take(1000, wait=False)
    for view in views:
        pool.give(view)


def test_the_budget_counts_all_buffers_together() -> None:
    pool = StagingPool(2, max_bytes=1500)
    held = pool.take(1000, wait=False)
    with pytest.raises(Busy):
        pool.take(1000, wait=False)
    pool.give(held)
    with pytest.raises(Busy, match="the state has 2000 bytes"):
        pool.take(2000, wait=True)
    pool.give(pool.take(1500, wait=False))
    assert pool.allocated_bytes <= 1500


def test_a_waiter_gets_the_buffer_that_comes_free() -> None:
    pool = StagingPool(1)
    held = pool.take(10, wait=False)
    got = threading.Event()

    def taker() -> None:
        pool.give(pool.take(10, wait=True))
        got.set()

    thread = threading.Thread(target=taker)
    thread.start()
    assert not got.is_set()
    pool.give(held)
    assert got.wait(60)
    thread.join()


def test_an_empty_state_needs_no_memory() -> None:
    pool = StagingPool(1)
    assert len(pool.take(0, wait=False)) == 0
