"""Sums over a gang: by rank, and by share with the same bits whatever the size."""

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from strata.worker.collective.gang import Gang
from strata.worker.plan import owners, shares_of

_WORKERS = 5


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
