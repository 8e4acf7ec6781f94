"""The pulse: leases end by themselves; a stall of our own kills nobody, nor does what we have not read yet."""

import asyncio
import time

from strata.clock import SystemClock
from strata.cluster import events as e
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.ticker import run_ticker
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from tests.support.memory_journal import MemoryJournal
from tests.support.pure_cluster import spec


async def test_a_lease_ends_without_being_asked_for() -> None:
    coordinator = Coordinator(ClusterState(StateConfig(worker_lease_s=0.3)), MemoryJournal(), SystemClock())
    await coordinator.open()
    lost = asyncio.Event()
    coordinator.listen(lambda event: lost.set() if isinstance(event, e.MembersLost) else None)
    await coordinator.ask(c.RegisterWorker(spec=spec("a")))
    ticker = asyncio.create_task(run_ticker(coordinator, lambda: None))
    await asyncio.wait_for(lost.wait(), 5)
    ticker.cancel()


async def test_a_stall_of_our_own_renews_every_lease() -> None:
    coordinator = Coordinator(ClusterState(StateConfig(worker_lease_s=1.0)), MemoryJournal(), SystemClock())
    await coordinator.open()
    await coordinator.ask(c.RegisterWorker(spec=spec("a")))
    ticker = asyncio.create_task(run_ticker(coordinator, lambda: None))
    await asyncio.sleep(0)
    time.sleep(1.6)  # noqa: ASYNC251 - the stall itself: the loop must stand still
    ticks = coordinator.meter.loop_lag_ms
    while coordinator.meter.loop_lag_ms == ticks:  # noqa: ASYNC110 - the ticker tells nobody, by design
        await asyncio.sleep(0.01)
    assert coordinator.meter.loop_lag_ms > 1_000
    assert coordinator.state.membership.workers["a"].alive
    ticker.cancel()


async def test_what_lies_unread_renews_every_lease() -> None:
    """A busy loop turns often, and yet the beats of some lie there for longer than their lease."""
    lease_s, unread_s, ticks = 0.3, 0.4, 0
    coordinator = Coordinator(ClusterState(StateConfig(worker_lease_s=lease_s)), MemoryJournal(), SystemClock())
    await coordinator.open()
    lost, ticked = asyncio.Event(), asyncio.Event()
    coordinator.listen(lambda event: lost.set() if isinstance(event, e.MembersLost) else None)
    await coordinator.ask(c.RegisterWorker(spec=spec("a")))

    def count() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 5:  # each a fifth of a second: three terms
            ticked.set()

    ticker = asyncio.create_task(run_ticker(coordinator, count, lambda: unread_s))
    await asyncio.wait_for(ticked.wait(), 30)
    assert coordinator.state.membership.workers["a"].alive
    unread_s = 0.0
    await asyncio.wait_for(lost.wait(), 30)
    ticker.cancel()
