"""Releases leave in order, some hosts in each turn of the loop, and all of them before anything else is told."""

import asyncio

import pytest

from strata.cluster.events import BarrierReleased
from strata.coordinator.rpc.release_queue import ReleaseQueue
from strata.coordinator.state.outcomes import Outcome

_OUTCOME = BarrierReleased(
    task_id="t",
    barrier_id="b",
    step=1,
    round=1,
    generation=1,
    worker_ids=("w",),
    request_ids=("r",),
    absent=(),
    created_at=0.0,
    at=1.0,
)


class _Hosts:
    def __init__(self, broken: int = -1) -> None:
        self._broken = broken
        self.told: list[int] = []
        self.queue = ReleaseQueue()

    def release(self, *numbers: int) -> None:
        self.queue.add(_OUTCOME, "r", iter([(self._tell, number) for number in numbers]))

    def _tell(self, outcome: Outcome, request_id: str, number: int) -> None:
        assert (outcome, request_id) == (_OUTCOME, "r")
        if number == self._broken:
            raise ConnectionError("as asked")
        self.told.append(number)


async def test_a_small_barrier_is_told_at_once() -> None:
    hosts = _Hosts()
    hosts.release(*range(8))
    assert hosts.told == list(range(8))


async def test_a_large_one_is_told_in_order_and_in_several_turns() -> None:
    hosts = _Hosts()
    hosts.release(*range(1_000))
    hosts.release(*range(1_000, 1_200))
    num_told = []
    while len(hosts.told) < 1_200:
        num_told.append(len(hosts.told))
        await asyncio.sleep(0)
    assert hosts.told == list(range(1_200))
    assert num_told[:3] == [128, 256, 384]
    hosts.release(1_200)
    assert hosts.told[-1] == 1_200


async def test_what_is_left_is_told_when_something_else_is_to_be() -> None:
    hosts = _Hosts()
    hosts.release(*range(500))
    hosts.queue.finish()
    assert hosts.told == list(range(500))
    await asyncio.sleep(0)
    assert len(hosts.told) == 500


async def test_one_that_cannot_be_told_keeps_nobody_else_waiting() -> None:
    hosts = _Hosts(broken=3)
    with pytest.raises(ConnectionError):
        hosts.release(*range(10))
    for _ in range(2):
        await asyncio.sleep(0)
    assert hosts.told == [0, 1, 2, *range(4, 10)]
