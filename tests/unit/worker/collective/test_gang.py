"""A gang: sums by rank, sums by share with the same bits whatever the size, states of one rank for others, and the end
of a wait for the dead."""

import contextlib
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from strata.errors import InvalidArgument, PeerLost
from strata.worker.collective.gang import Gang
from strata.worker.plan import owners, shares_of
from tests.support.ports import free_ports

_WORKERS = 5
_Result = TypeVar("_Result")


def _sums(world_size: int, shares: NDArray[np.float64]) -> list[bytes]:
    """What every rank of a world of this size has as the sum."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = probe.getsockname()

    def sum_up(rank: int) -> bytes:
        gang = Gang(rank, world_size, address, b"secret")
        mine = [shares[share] for share in shares_of(rank, world_size, _WORKERS)]
        total = gang.sum_shares(mine, owners(world_size, _WORKERS))
        assert gang.gather(rank) == list(range(world_size))
        gang.close()
        return total.tobytes()

    with ThreadPoolExecutor(world_size) as ranks:
        return list(ranks.map(sum_up, range(world_size)))


def test_shares_are_added_in_their_order_at_every_size() -> None:
    random = np.random.default_rng(3)
    shares = random.normal(size=(_WORKERS, 300)) * 10.0 ** random.integers(-9, 9, (_WORKERS, 300))
    expected = np.zeros(300)
    for share in shares:
        expected += share
    for world_size in range(1, _WORKERS + 1):
        assert set(_sums(world_size, shares)) == {expected.tobytes()}


def _each(size: int, act: Callable[[Gang], _Result]) -> list[_Result]:
    """What every rank gets, by rank."""
    address = ("127.0.0.1", free_ports(1)[0])
    with ThreadPoolExecutor(size) as threads:
        ranks = [threads.submit(lambda rank: act(Gang(rank, size, address, b"secret")), rank) for rank in range(size)]
        return [rank.result(60) for rank in ranks]


@pytest.mark.parametrize("values", [np.ones((2, 3), np.float32), np.arange(4), 1.5, [[1, 2], [3, 4]]])
def test_a_sum_has_the_shape_of_what_was_given_and_is_the_callers(values: NDArray[np.float64]) -> None:
    for total in _each(3, lambda gang: gang.sum(values)):
        assert np.array_equal(total, 3 * np.asarray(values, np.float64))
        total += 1  # no rank's is read-only


def test_arrays_of_different_sizes_are_refused_by_their_rank() -> None:
    def sum_up(gang: Gang) -> NDArray[np.float64]:
        with contextlib.closing(gang):  # as the end of its process does
            return gang.sum(np.zeros(2 + gang.rank))

    with pytest.raises(InvalidArgument, match="rank 1 gave 3 numbers to a sum to which rank 0 gave 2"):
        _each(2, sum_up)


@pytest.mark.parametrize(("source", "takers"), [(0, [1, 2]), (1, [0, 2]), (2, [0]), (2, [1]), (1, [])])
def test_a_state_comes_from_any_rank_to_those_that_lack_it(source: int, takers: list[int]) -> None:
    state = bytes(range(256)) * 20_000

    def share(gang: Gang) -> bytes | None:
        pieces = [memoryview(state)[:10], memoryview(state)[10:]] if gang.rank == source else []
        found = gang.share(source, takers, pieces)
        return None if found is None else bytes(found)

    assert _each(3, share) == [state if rank in takers else None for rank in range(3)]


def test_a_wait_for_a_peer_ends_when_another_thread_says_so() -> None:
    def wait(gang: Gang) -> str:
        if gang.rank == 2:
            return "never came"
        aborting = threading.Timer(0.1, gang.abort)
        aborting.start()
        with pytest.raises(PeerLost, match="is gone"):
            gang.sum(np.ones(3))
        aborting.join()
        gang.abort()  # once more does no harm, and neither does it afterwards
        gang.close()
        gang.abort()
        return "heard"

    assert _each(3, wait) == ["heard", "heard", "never came"]


def test_a_sum_that_all_have_given_to_is_finished_by_all_who_live() -> None:
    def add(gang: Gang) -> list[float]:
        if gang.rank == 1:
            gang._send(0, np.full(2, 10.0).tobytes())
            gang.close()
            return []
        return [float(value) for value in gang.sum(np.full(2, float(gang.rank + 1)))]

    assert _each(3, add) == [[14.0, 14.0], [], [14.0, 14.0]]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_meeting_to_which_nobody_comes_any_more_is_given_up(rank: int) -> None:
    over = threading.Event()
    threading.Timer(0.1, over.set).start()
    with pytest.raises(PeerLost, match="the world changed"):
        Gang(rank, 2, ("127.0.0.1", free_ports(1)[0]), b"secret", given_up=over.is_set)
