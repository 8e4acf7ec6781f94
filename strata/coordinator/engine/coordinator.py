"""The one writer: every command goes through here, in order, on one event loop. A reply leaves only when everything it
rests on is durable; followers and waiters hear of an event only then, too. Ranks are released a little earlier, when
the journal keeps it that they are (ADR 47).
"""

import asyncio
import logging
import math
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from strata.clock import Clock
from strata.cluster import events as e
from strata.cluster.members import Worker
from strata.coordinator.engine.feed import Feed
from strata.coordinator.engine.meter import Meter
from strata.coordinator.engine.snapshots import Draft, Snapshots
from strata.coordinator.engine.vault import Vault
from strata.coordinator.engine.waiters import Tell, Waiter, Waiters
from strata.coordinator.journal.base import Journal, Record, Stored
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import SaveAttempt, Verdict
from strata.coordinator.state.cluster import Applied, ClusterState
from strata.coordinator.state.now import Now, read_clock
from strata.coordinator.state.outcomes import Outcome, encode_outcome, key_of
from strata.coordinator.state.replies import BarrierReply
from strata.coordinator.state.roll import Roll
from strata.errors import Busy, NotLeader, Unavailable
from strata.types.barriers import BarrierArrival, BarrierKey

__all__ = ["Coordinator"]

_log = logging.getLogger(__name__)

# A start reads what came after the last snapshot: so many records at most, or so many bytes of them, which barriers of
# 10,000 ranks fill in two minutes.
_SNAPSHOT_EVERY, _SNAPSHOT_BYTES = 5_000, 64 << 20
_SNAPSHOT_SLICE_S, _SNAPSHOT_PAUSE_S = 0.001, 0.004  # a fifth of the loop
_STUCK_S = 2.0  # without progress although something waits for the disk


class Coordinator:
    """Owns the state. `stopped` is done when it was told to stop, or holds the error after which nothing may be
    promised any more."""

    def __init__(self, state: ClusterState, journal: Journal, clock: Clock) -> None:
        self.state = state
        self.feed = Feed()
        self.vault = Vault()
        self.meter = Meter(clock)
        self._journal = journal
        self._snapshots = Snapshots(state)
        self._clock = clock
        self._seq = 0
        self._durable = 0
        self._appended = 0  # the last record that nobody may hear of before it is durable
        self._snapshot_seq = 0
        self._unsaved_bytes = 0  # of records behind the last snapshot
        self._draft: Draft | None = None
        self._progress_at = 0.0
        self._unpublished: deque[tuple[Record, e.Event]] = deque()
        self._ahead: dict[int, int] = {}  # of these, by their identity, those that may be told: their numbers
        self._waiting: deque[tuple[int, Callable[[BaseException | None], None]]] = deque()
        self._barriers = Waiters()
        self._released_at: dict[BarrierKey, float] = {}
        self._attempts: dict[str, list[asyncio.Future[None]]] = {}
        self._listeners: list[Callable[[e.Event], None]] = []
        self._before: list[Callable[[], None]] = []
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # --- start and stop

    async def open(self) -> None:
        """Replays the journal, gives every known lease a fresh term, and begins a new term of its own."""
        stored = await self._journal.open(self._on_durable, self._on_failure)
        try:
            await self._begin(stored)
        except BaseException:
            await self._journal.close()
            raise

    async def _begin(self, stored: Stored) -> None:
        now = self.now()
        self._snapshots.restore(stored, now)
        self.state.datasets.timer = self.meter.dealing  # set after the replay, whose dealings are not measured
        self.vault.restore(stored.private)
        self._seq = self._durable = stored.last_seq
        self._snapshot_seq = stored.snapshot_seq
        self._unsaved_bytes = sum(record.size for record in stored.records)
        self.feed.start_after(stored.snapshot_seq, stored.records)
        self.state.renew_leases(now)
        await self.ask(c.Start(cluster_id=uuid.uuid4().hex, after=self._seq))
        _log.info(
            "term %d of cluster %s: %d workers, %d datasets, %d tasks known",
            self.state.term,
            self.state.cluster_id,
            len(self.state.cluster.workers),
            len(self.state.cluster.datasets),
            len(self.state.cluster.tasks),
        )

    def stop(self) -> None:
        """No more commands: whoever serves this coordinator ends when `stopped` is done."""
        if not self.stopped.done():
            self.stopped.set_result(None)

    async def close(self) -> None:
        """Saves a snapshot, so that the next start is quick, and lets go of the journal."""
        if not (self.stopped.done() and self.stopped.exception()):
            self._draft = self._snapshots.begin(self._seq)
            self._go_on(self._draft, math.inf)
        await self._journal.close()

    def listen(self, listener: Callable[[e.Event], None]) -> None:
        """Calls `listener` with every event once it is durable. It must be quick and must not raise."""
        self._listeners.append(listener)

    def settle_first(self, settle: Callable[[], None]) -> None:
        """Calls `settle`, of who puts arrivals together, before every command: what came first is decided first."""
        self._before.append(settle)

    def now(self) -> Now:
        return read_clock(self._clock)

    def check_leads(self) -> None:
        """Raises NotLeader while another coordinator may lead: what this one knows may be old."""
        if not self._journal.leads():
            raise NotLeader("this coordinator does not hold the journal's lease now")

    def is_steady(self) -> bool:
        """Whether decisions become durable now: not while the journal's disk or database is away."""
        stuck = self._unpublished and self._clock.monotonic() - self._progress_at > _STUCK_S
        return self._journal.leads() and not stuck

    def check_steady(self) -> None:
        """Raises Busy where `is_steady` says no."""
        if not self.is_steady():
            raise Busy(
                "the journal's disk or database does not answer", hint="Try again: what was acknowledged is not lost."
            )

    @property
    def seq(self) -> int:
        """The number of the last event that is in the state, durable or not yet."""
        return self._seq

    # --- commands

    async def ask(self, command: c.Command[c.Reply]) -> c.Reply:
        """Applies a command and gives its reply when that is safe to give."""
        applied = self.apply(command)
        await self.settled()
        return applied.reply

    def apply(self, command: c.Command[c.Reply]) -> Applied[c.Reply]:
        """Applies a command and queues its events; the caller must await `settled` before it answers anybody."""
        self._check_running()
        self.settle_arrivals()
        now = self.now()
        applied = self.state.apply(command, now)
        if applied.events:
            self._record(applied.events, now, self.vault.take(command, applied.events))
        return applied

    def settle_arrivals(self) -> None:
        """Hears those who came until now: what comes next must not overtake them."""
        for settle in self._before:
            settle()

    def _check_running(self) -> None:
        if self.stopped.done():
            raise Unavailable("the coordinator is shutting down")

    def _record(self, events: list[e.Event], now: Now, private: Mapping[str, bytes]) -> None:
        self._journal.append([self._numbered(event, now) for event in events], private)
        self._appended = self._seq

    def _record_release(self, event: Outcome, now: Now) -> bool:
        """Whether those whom it releases may be told now: if this process is killed, the next one knows of it. That
        holds for it as long as it holds for everything before it."""
        record = self._numbered(event, now)
        if self._durable >= self._appended and self._journal.keep(record):
            self._ahead[id(event)] = record.seq
            return True
        self._journal.append([record])
        self._appended = self._seq
        return False

    def _numbered(self, event: e.Event, now: Now) -> Record:
        if not self._unpublished:
            self._progress_at = now.monotonic
        self._seq += 1
        first, *rest = encode_outcome(event) if isinstance(event, Outcome) else (e.encode_event(event),)
        record = Record(self._seq, now.wall, type(event).__name__, first, tuple(rest))
        self._unsaved_bytes += record.size
        self._unpublished.append((record, event))
        self._snapshots.note(record)
        if isinstance(event, e.BarrierReleased):
            self._released_at[key_of(event)] = now.monotonic
        return record

    def record_of(self, event: Outcome) -> int:
        """The number of its record if it may be told and is not durable yet, else 0."""
        return self._ahead.get(id(event), 0)

    async def settled(self) -> None:
        """Returns when everything that has been decided so far is durable."""
        if self._durable >= self._seq:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def resolve(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self._waiting.append((self._seq, resolve))
        await future

    def when_settled(self, then: Callable[[BaseException | None], None]) -> None:
        """`settled` for those who have no task: calls `then` now or when it is so, with the error if it never will."""
        if self._durable >= self._seq:
            then(None)
        else:
            self._waiting.append((self._seq, then))

    # --- durability

    def _on_durable(self, seq: int) -> None:
        self._durable = seq
        self._progress_at = self._clock.monotonic()
        published: list[Record] = []
        while self._unpublished and self._unpublished[0][0].seq <= seq:
            record, event = self._unpublished.popleft()
            self._ahead.pop(id(event), None)
            published.append(record)
            self._announce(event)
        if published:
            self.feed.publish(published)
        while self._waiting and self._waiting[0][0] <= seq:
            self._waiting.popleft()[1](None)
        self.meter.commits(self._journal.take_commit_times())
        due = seq - self._snapshot_seq >= _SNAPSHOT_EVERY or self._unsaved_bytes >= _SNAPSHOT_BYTES
        if due and self._draft is None:
            self._draft = self._snapshots.begin(self._seq)
            self._snapshot_seq, self._unsaved_bytes = self._seq, 0
            self._go_on(self._draft)

    def _on_failure(self, error: BaseException) -> None:
        if isinstance(error, NotLeader):
            _log.warning("stopping: %s", error)
        else:
            _log.critical("the journal has failed, stopping: %s", error)
            error = Unavailable(f"the journal cannot be written: {error}")
        if not self.stopped.done():
            self.stopped.set_exception(error)
        while self._waiting:
            self._waiting.popleft()[1](error)

    def _go_on(self, draft: Draft, seconds: float = _SNAPSHOT_SLICE_S) -> None:
        """Writes a snapshot, of everything decided when it was begun, in slices: others are served in between. The
        journal keeps the order, so it cannot become durable before its records."""
        if draft is not self._draft:  # the last one, at the end, took its place
            return
        snapshot = draft.go_on(seconds)
        if snapshot is None:
            asyncio.get_running_loop().call_later(_SNAPSHOT_PAUSE_S, self._go_on, draft)
        else:
            self._draft = None
            self._journal.save_snapshot(snapshot)

    def _announce(self, event: e.Event) -> None:
        """Tells everybody who waits for this event."""
        match event:
            case e.BarrierReleased() | e.BarrierBroke():
                self._announce_barrier(event)
            case e.CheckpointPrepared() | e.CheckpointAborted():
                self._wake_attempt(event.attempt)
            case e.CheckpointCommitted():
                self._wake_attempt(event.attempt)
                self.meter.checkpoint(event.size_bytes, event.duration_s)
            case e.MembersLost():
                self._barriers.fence(dict(zip(event.worker_ids, event.reasons, strict=True)))
            case _:
                pass
        for listener in self._listeners:
            listener(event)

    def _announce_barrier(self, event: Outcome) -> None:
        self._barriers.release(event)
        complete_at = self._released_at.pop(key_of(event), None)
        if complete_at is not None:
            latency_ms = (self._clock.monotonic() - complete_at) * 1e3
            self.meter.barrier(latency_ms, max(0.0, event.at - event.created_at) * 1e3)

    # --- waiting

    async def wait_barrier(self, arrival: BarrierArrival) -> Outcome:
        """Arrives and waits for the outcome. A waiter that is cancelled withdraws its arrival."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def tell(_: Waiter, worker_ids: Sequence[str], outcome: Outcome | BaseException) -> None:
            if future.done():
                return
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.settle_arrivals()
        waiter = self.arrive(arrival, tell)
        try:
            outcome = await future
            await self.settled()  # this one will not say what it was told: see `ReleaseWriter`
            return outcome
        except asyncio.CancelledError:
            self.give_up(waiter, arrival.worker_id)
            raise
        finally:
            self.state.barriers.collected(waiter.key, (arrival.worker_id,))

    def arrive(self, arrival: BarrierArrival, tell: Tell) -> Waiter:
        """Arrives; `tell` hears the outcome once it is kept or durable, never before this has returned."""
        self._check_running()
        now = self.now()
        reply, event = self.state.barriers.arrive(arrival, now)  # no command: its frame would cost a sixth
        return self._wait(
            Waiter(reply.key, reply.round, Roll((arrival.worker_id,)), arrival.request_id, tell), reply, event, now
        )

    def arrive_together(self, arrival: BarrierArrival, task_id: str, roll: Roll, tell: Tell) -> Waiter | None:
        """`Barriers.arrive_together`, and who is told of it, as for one."""
        self._check_running()
        now = self.now()
        arrived = self.state.barriers.arrive_together(arrival, task_id, roll, now)
        if arrived is None:
            return None
        reply, event = arrived
        return self._wait(Waiter(reply.key, reply.round, roll, arrival.request_id, tell), reply, event, now)

    def _wait(self, waiter: Waiter, reply: BarrierReply, event: Outcome | None, now: Now) -> Waiter:
        if event is not None:
            self.state.evolve(event, now)
            if self._record_release(event, now):
                asyncio.get_running_loop().call_soon(self._announce_barrier, event)
        outcome, members = reply.outcome, waiter.roll.names
        if outcome is not None and self._durable >= self._seq:
            asyncio.get_running_loop().call_soon(waiter.tell, waiter, members, outcome)
        elif outcome is None or event is not None:
            self._barriers.add(waiter)
        else:  # decided by another call, whose events are on their way to the disk
            decided = outcome
            self._waiting.append((self._seq, lambda error: waiter.tell(waiter, members, error or decided)))
        return waiter

    def give_up(self, waiter: Waiter, worker_id: str) -> None:
        """Only the last call of a member withdraws its arrival."""
        if self._barriers.remove(waiter, worker_id):
            self.state.barriers.withdraw(waiter.key, waiter.round, worker_id)

    async def wait_attempt(self, attempt: str, worker: Worker) -> SaveAttempt:
        """Returns when the attempt is decided, or when it is this worker's turn to write COMMIT.json."""
        while True:
            known = self.state.checkpoints.attempt(attempt)
            await self.settled()
            if known.verdict in (Verdict.COMMITTED, Verdict.ABORTED):
                return known
            if known.verdict is Verdict.PREPARED and known.committer == worker.rank:
                return known
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiters = self._attempts.setdefault(attempt, [])
            waiters.append(future)
            try:
                await future
            finally:
                waiters.remove(future)

    def _wake_attempt(self, attempt: str) -> None:
        for future in self._attempts.pop(attempt, ()):  # each waiter takes itself off the list
            if not future.done():
                future.set_result(None)
