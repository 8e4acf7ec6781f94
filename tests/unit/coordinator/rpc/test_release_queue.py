"""Releases leave in order, some hosts in each turn of the loop, and all of them before anything else is told."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from strata.coordinator.rpc.release_queue import ReleaseQueue


class _Hosts:
    def __init__(self) -> None:
        self.told: list[int] = []

    def releases(self, *numbers: int, broken: int = -1) -> Iterator[Callable[[], None]]:
        for number in numbers:
            yield lambda number=number: self._tell(number, broken)  # type: ignore[misc]

    def _tell(self, number: int, broken: int) -> None:
        if number == broken:
            raise ConnectionError("as asked")
        self.told.append(number)


async def test_a_small_barrier_is_told_at_once() -> None:
    hosts = _Hosts()
    ReleaseQueue().add(hosts.releases(*range(100)))
    assert hosts.told == list(range(100))


async def test_a_large_one_is_told_in_order_and_in_several_turns() -> None:
    hosts, queue = _Hosts(), ReleaseQueue()
    queue.add(hosts.releases(*range(1_000)))
    queue.add(hosts.releases(*range(1_000, 1_200)))
    num_told = []
    while len(hosts.told) < 1_200:
        num_told.append(len(hosts.told))
        await asyncio.sleep(0)
    assert hosts.told == list(range(1_200))
    assert num_told[:3] == [125, 250, 375]
    queue.add(hosts.releases(1_200))
    assert hosts.told[-1] == 1_200


async def test_what_is_left_is_told_when_something_else_is_to_be() -> None:
    hosts, queue = _Hosts(), ReleaseQueue()
    queue.add(hosts.releases(*range(500)))
    queue.finish()
    assert hosts.told == list(range(500))
    await asyncio.sleep(0)
    assert len(hosts.told) == 500


async def test_one_that_cannot_be_told_keeps_nobody_else_waiting() -> None:
    hosts, queue = _Hosts(), ReleaseQueue()
    with pytest.raises(ConnectionError):
        queue.add(hosts.releases(*range(10), broken=3))
    await asyncio.sleep(0)
    assert hosts.told == [0, 1, 2, *range(4, 10)]
