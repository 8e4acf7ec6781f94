"""The one writer: nobody hears anything before it is durable, and everybody who waits is told in the end."""

import asyncio
from dataclasses import replace

import pytest

from strata.clock import ManualClock
from strata.cluster import events as e
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import Verdict, Vote
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.outcomes import Outcome
from strata.errors import Fenced, Unavailable
from strata.types.barriers import BarrierArrival, BarrierPolicy
from tests.support.memory_journal import MemoryJournal
from tests.support.pure_cluster import caller, spec


async def opened(journal: MemoryJournal) -> Coordinator:
    coordinator = Coordinator(ClusterState(StateConfig()), journal, ManualClock())
    await coordinator.open()
    return coordinator


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
async def coordinator(journal: MemoryJournal) -> Coordinator:
    return await opened(journal)


def register(worker_id: str) -> c.RegisterWorker:
    return c.RegisterWorker(spec=spec(worker_id))


async def turns() -> None:
    """Lets everything that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def waiter(coordinator: Coordinator, worker_id: str, **values: object) -> "asyncio.Task[Outcome]":
    arrival = BarrierArrival(worker_id=worker_id, barrier_id="b", **values)  # type: ignore[arg-type]  # by name
    return asyncio.create_task(coordinator.wait_barrier(arrival))


async def test_a_reply_waits_for_the_disk(coordinator: Coordinator, journal: MemoryJournal) -> None:
    journal.hold = True
    asked = asyncio.create_task(coordinator.ask(register("a")))
    await turns()
    assert not asked.done()
    journal.flush()
    await asyncio.wait_for(asked, 1)


async def test_what_was_not_durable_never_happened(coordinator: Coordinator, journal: MemoryJournal) -> None:
    await coordinator.ask(register("a"))
    journal.hold = True
    asked = asyncio.create_task(coordinator.ask(register("b")))
    await turns()
    journal.crash()
    asked.cancel()
    journal.hold = False
    again = await opened(journal)
    assert set(again.state.membership.workers) == {"a"}
    assert again.state.term == 2
    assert again.state.cluster_id == coordinator.state.cluster_id


async def test_a_heartbeat_after_an_undurable_decision_waits_for_it_too(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    journal.hold = True
    coordinator.apply(register("a"))
    settled = asyncio.create_task(coordinator.settled())
    await turns()
    assert not settled.done()
    journal.flush()
    await settled


async def test_waiters_are_released_when_the_release_is_durable(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    for name in "ab":
        await coordinator.ask(register(name))
    first = waiter(coordinator, "a")
    await turns()
    journal.hold = True
    last = waiter(coordinator, "b")
    await turns()
    assert not first.done()
    assert not last.done()
    journal.flush()
    assert await first == await last
    assert isinstance(first.result(), e.BarrierReleased)
    assert coordinator.meter.barrier_latency_p99_ms() is not None


def tied(coordinator: Coordinator, worker_id: str) -> list[object]:
    """Arrives as ranks do on their streams; what it is told."""
    told: list[object] = []
    arrival = BarrierArrival(worker_id=worker_id, barrier_id="b")
    coordinator.arrive(arrival, lambda waiter, members, outcome: told.append(outcome))
    return told


async def test_ranks_are_released_when_the_release_is_kept_and_plain_clients_when_it_is_durable() -> None:
    journal = MemoryJournal(keeps=True)
    coordinator = await opened(journal)
    for name in "abc":
        await coordinator.ask(register(name))
    journal.hold = True
    plain, first = waiter(coordinator, "a"), tied(coordinator, "b")
    await turns()
    last = tied(coordinator, "c")
    assert last == [], "never before `arrive` has returned"
    await turns()
    assert first == last
    (released,) = first
    assert isinstance(released, e.BarrierReleased)
    assert coordinator.record_of(released) == coordinator.seq
    assert not plain.done()
    journal.flush()
    assert await plain is released
    assert coordinator.record_of(released) == 0
    assert first == last == [released], "told once"


async def test_a_release_is_not_told_before_what_it_rests_on() -> None:
    """Here a rank that joined: if that is forgotten, so is whatever it made possible."""
    journal = MemoryJournal(keeps=True)
    coordinator = await opened(journal)
    await coordinator.ask(register("a"))
    journal.hold = True
    joining = asyncio.create_task(coordinator.ask(register("b")))
    await turns()
    told = [tied(coordinator, name) for name in "ab"]
    await turns()
    assert told == [[], []]
    journal.flush()
    await joining
    assert [type(item) for (item,) in told] == [e.BarrierReleased] * 2


async def told_ahead(journal: MemoryJournal) -> tuple[int, object]:
    """Two ranks are released, and the journal has only kept it: its record, and what they were told."""
    coordinator = await opened(journal)
    for name in "ab":
        await coordinator.ask(register(name))
    journal.hold = True
    told = [tied(coordinator, name) for name in "ab"]
    await turns()
    journal.hold = False
    assert told[0] == told[1]
    return coordinator.seq, told[0][0]


async def test_a_release_that_was_told_is_known_after_a_kill() -> None:
    journal = MemoryJournal(keeps=True)
    record, told = await told_ahead(journal)
    journal.crash()
    again = await opened(journal)
    assert await asyncio.wait_for(waiter(again, "a"), 1) == told
    assert not again.state.cluster.has_forgotten(1, record)


async def test_a_power_failure_is_seen_by_who_was_told() -> None:
    journal = MemoryJournal(keeps=True)
    record, _ = await told_ahead(journal)
    journal.crash(power=True)
    again = await opened(journal)
    assert again.state.cluster.has_forgotten(1, record)
    assert not again.state.cluster.has_forgotten(1, record - 1)
    await again.close()
    third = await opened(journal)
    assert third.state.cluster.has_forgotten(1, record), "a start from a snapshot knows it, too"


async def test_two_calls_of_one_member_wait_side_by_side(coordinator: Coordinator) -> None:
    for name in "ab":
        await coordinator.ask(register(name))
    calls = [waiter(coordinator, "a", request_id="r") for _ in range(2)]
    await turns()
    calls[0].cancel()
    await turns()
    assert coordinator.state.barriers.open, "the retry still waits"
    await waiter(coordinator, "b")
    assert isinstance(await calls[1], e.BarrierReleased)


async def test_the_answer_of_one_round_never_goes_to_an_arrival_at_the_next(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    for name in "ab":
        await coordinator.ask(register(name))
    journal.hold = True
    first = [waiter(coordinator, name, request_id="1") for name in "ab"]
    await turns()
    early = waiter(coordinator, "a", request_id="2")  # the release is decided, but not durable yet
    await turns()
    journal.flush()
    assert [(await call).round for call in first] == [1, 1]
    await turns()
    assert not early.done()
    first[0].cancel()
    last = waiter(coordinator, "b", request_id="2")
    await turns()
    journal.flush()
    assert (await early).round == (await last).round == 2


async def test_who_is_cancelled_withdraws(coordinator: Coordinator) -> None:
    for name in "ab":
        await coordinator.ask(register(name))
    call = waiter(coordinator, "a")
    await turns()
    call.cancel()
    await turns()
    assert not coordinator.state.barriers.open
    assert not waiter(coordinator, "b").done()


@pytest.mark.parametrize("policy", list(BarrierPolicy))
async def test_a_zombie_that_waits_is_fenced_whatever_the_policy(
    coordinator: Coordinator, policy: BarrierPolicy
) -> None:
    for name in "abc":
        await coordinator.ask(register(name))
    zombie, other = (waiter(coordinator, name, policy=policy) for name in "ab")
    await turns()
    await coordinator.ask(c.LoseWorkers(gone={"a": "no heartbeat"}))
    with pytest.raises(Fenced, match="worker a is out: no heartbeat"):
        await asyncio.wait_for(zombie, 1)
    if policy is BarrierPolicy.FAIL:
        broken = await other
        assert isinstance(broken, e.BarrierBroke)
        assert broken.missing == ("a",)
    other.cancel()


async def test_an_attempt_s_waiters_hear_the_decision_and_the_committer_its_turn(coordinator: Coordinator) -> None:
    for name in "ab":
        await coordinator.ask(register(name))
    begin = c.BeginCheckpoint(caller=caller("a"), step=1, epoch=0, storage_path="", deadline_s=60)
    attempt = coordinator.apply(begin).reply.attempt
    a, b = (coordinator.state.membership.workers[name] for name in "ab")
    committer = asyncio.create_task(coordinator.wait_attempt(attempt, a))
    other = asyncio.create_task(coordinator.wait_attempt(attempt, b))
    given_up = asyncio.create_task(coordinator.wait_attempt(attempt, b))
    await turns()
    given_up.cancel()
    for rank, name in enumerate("ab"):
        vote = Vote(manifest_key="k", manifest_hash="h", size_bytes=1, duration_s=1)
        await coordinator.ask(c.VoteCheckpoint(caller=caller(name), attempt=attempt, rank=rank, vote=vote))
    assert (await asyncio.wait_for(committer, 1)).verdict is Verdict.PREPARED
    await turns()
    assert not other.done()
    await coordinator.ask(c.CommitCheckpoint(caller=caller("a"), attempt=attempt))
    assert (await asyncio.wait_for(other, 1)).verdict is Verdict.COMMITTED


async def test_followers_get_events_in_order_and_only_when_durable(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    follower = coordinator.feed.follow()
    heard: list[str] = []
    coordinator.listen(lambda event: heard.append(type(event).__name__))
    journal.hold = True
    coordinator.apply(register("a"))
    coordinator.apply(register("b"))
    assert not heard
    journal.flush()
    batch = await follower.next()
    assert [record.seq for record in batch] == [2, 3]
    assert heard == ["WorkerJoined", "WorkerJoined"]
    assert [record.seq for record in coordinator.feed.since(1) or ()] == [2, 3]
    assert coordinator.feed.since(99) is None


async def test_a_snapshot_is_taken_under_constant_load(coordinator: Coordinator, journal: MemoryJournal) -> None:
    """There is always something undurable: the snapshot must not wait for a quiet moment."""
    journal.hold = True
    coordinator.apply(register("a"))
    for _ in range(1_800):
        coordinator.apply(register("a"))
        coordinator.apply(register("a"))
        journal.flush()
        coordinator.apply(register("a"))
    while coordinator._draft is not None:  # noqa: ASYNC110  # slices of time, of which a busy machine has few
        await asyncio.sleep(0)
    journal.flush()
    journal.crash()
    stored = journal.begin(lambda seq: None)
    assert stored.snapshot is not None
    assert len(stored.records) < 6_000


async def test_a_snapshot_is_taken_when_records_are_few_and_large(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    large = {"words": "x" * 60_000}
    for number in range(1_200):
        await coordinator.ask(c.RegisterWorker(spec=replace(spec(f"w{number}"), metadata=large)))
    while coordinator._draft is not None:  # noqa: ASYNC110  # as above
        await asyncio.sleep(0)
    journal.crash()
    stored = journal.begin(lambda seq: None)
    assert stored.snapshot is not None
    assert len(stored.records) < 120


async def test_close_saves_a_snapshot_that_the_next_start_uses(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    await coordinator.ask(register("a"))
    coordinator.stop()
    with pytest.raises(Unavailable, match="shutting down"):
        await coordinator.ask(register("b"))
    await coordinator.close()
    assert journal.begin(lambda seq: None).records == []
    again = await opened(journal)
    assert again.state.membership.workers["a"].alive
    assert again.seq == coordinator.seq + 1


async def test_a_late_retry_is_answered_after_a_start_from_a_snapshot(
    coordinator: Coordinator, journal: MemoryJournal
) -> None:
    """The outcome is not in the snapshot, but in the record that the snapshot names."""
    for name in "ab":
        await coordinator.ask(register(name))
    first = [waiter(coordinator, name, request_id=f"{name}-1") for name in "ab"]
    outcomes = [await call for call in first]
    await coordinator.close()
    assert journal.begin(lambda seq: None).records == []
    again = await opened(journal)
    assert await waiter(again, "a", request_id="a-1") == outcomes[0]
    assert again.state.cluster.barriers == coordinator.state.cluster.barriers


async def test_a_snapshot_holds_on_to_no_outcome_that_is_forgotten(journal: MemoryJournal) -> None:
    clock = ManualClock()
    coordinator = Coordinator(ClusterState(StateConfig(worker_lease_s=1e6)), journal, clock)
    await coordinator.open()
    for name in "ab":
        await coordinator.ask(register(name))
    for step in (1, 2):
        for call in [waiter(coordinator, name, request_id=f"{name}-{step}", step=step) for name in "ab"]:
            await call
        clock.advance(400)
        await coordinator.ask(c.Tick())
    await coordinator.close()
    (record,) = journal.begin(lambda seq: None).outcomes
    event = e.decode_event(record.kind, record.body)
    assert isinstance(event, e.BarrierReleased)
    assert event.step == 2


class _FullDisk(MemoryJournal):
    """Takes records and then says that they cannot be written."""

    def open(self, on_durable, on_failure):  # type: ignore[no-untyped-def]  # as the base class
        self.fail = on_failure
        return super().open(on_durable, on_failure)


async def test_a_journal_that_fails_ends_every_promise() -> None:
    journal = _FullDisk()
    coordinator = await opened(journal)
    journal.hold = True
    asked = asyncio.create_task(coordinator.ask(register("a")))
    await turns()
    journal.fail(OSError("No space left on device"))
    for ending in (asked, coordinator.stopped):
        with pytest.raises(Unavailable, match="No space left on device"):
            await asyncio.wait_for(ending, 1)
    with pytest.raises(Unavailable):
        await coordinator.ask(register("b"))
