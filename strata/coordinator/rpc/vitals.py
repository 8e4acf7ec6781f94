"""Vitals: what changes all the time and is never journaled, made once per beat for all who watch.

A watcher that is slow gets the newest vitals only; state events are on another queue and are never dropped.
"""

import asyncio
from collections.abc import Sequence

from strata.cluster.members import Worker
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.meter import BARRIER_BOUNDS_MS
from strata.coordinator.rpc.spares import spares_by_task
from strata.coordinator.scheduling.progress import status_of
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["VitalsFeed", "Watcher"]

_INTERVAL_S = 0.5
_SLICE = 200  # workers whose vitals are made in one turn of the loop: that takes 2 ms
_PAUSE_S = 0.006  # after which the next are: ten thousand that beat would take half of the loop otherwise


class Watcher:
    """Holds the changes since it last looked, merged: a later word of a worker replaces an earlier one."""

    def __init__(self) -> None:
        self._workers: dict[str, ct.WorkerVitals] = {}
        self._rest = ct.Vitals()
        self._fresh = asyncio.Event()

    def offer(self, workers: list[ct.WorkerVitals], rest: ct.Vitals) -> None:
        for vitals in workers:
            self._workers[vitals.worker_id] = vitals
        self._rest = rest
        self._fresh.set()

    async def next(self) -> ct.Vitals:
        await self._fresh.wait()
        self._fresh.clear()
        merged = ct.Vitals(workers=self._workers.values())
        merged.MergeFrom(self._rest)
        self._workers = {}
        return merged


class VitalsFeed:
    """Makes the vitals. `run` is the only writer; nothing is made while nobody watches."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._state = coordinator.state
        self._watchers: set[Watcher] = set()

    def join(self) -> Watcher:
        watcher = Watcher()
        self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL_S)
            if not self._watchers:
                continue
            workers = await self._vitals_of(list(self._state.membership.pulses.take_changed()))
            rest = self._rest()
            for watcher in self._watchers:
                watcher.offer(workers, rest)

    async def full(self) -> ct.Vitals:
        """The vitals of all workers and barriers, for a new watcher."""
        vitals = ct.Vitals(workers=await self._vitals_of(list(self._state.cluster.workers)))
        vitals.MergeFrom(self._rest())
        return vitals

    async def _vitals_of(self, names: Sequence[str]) -> list[ct.WorkerVitals]:
        """Of those of them who are known, some at a time. Who changes meanwhile is among the next."""
        known, found = self._state.cluster.workers, []
        for number, name in enumerate(names, start=1):
            if name in known:
                found.append(self._worker(known[name]))
            if number % _SLICE == 0:
                await asyncio.sleep(_PAUSE_S)
        return found

    def _worker(self, worker: Worker) -> ct.WorkerVitals:
        pulse = self._state.membership.pulses.of(worker.worker_id)
        vitals = ct.WorkerVitals(
            worker_id=worker.worker_id,
            last_heartbeat=pulse.seen_wall if pulse.seen_wall is not None else worker.joined_at,
            state=self._state.membership.pulses.standing(worker.worker_id, worker.state).value,
            assigned_shards=self._state.shares.num_assigned(worker) if worker.alive else 0,
        )
        status = status_of(worker, self._state.membership.pulses)
        if status is not None:
            vitals.status.CopyFrom(status)
        if isinstance(pulse.usage, pb.ResourceUsage):
            vitals.resources.CopyFrom(pulse.usage)
        return vitals

    def _rest(self) -> ct.Vitals:
        barriers = self._state.barriers
        open_barriers = [
            ct.BarrierVitals(
                barrier_id=barrier.key.barrier_id,
                task_id=barrier.key.task_id,
                step=barrier.key.step,
                arrived=len(barrier.arrivals),
                total=barrier.total,
                created_at=barrier.created_at,
                missing=barriers.missing(barrier)[:100],
                round=barrier.round,
            )
            for barrier in barriers.open.values()
        ]
        return ct.Vitals(barriers=open_barriers, figures=self.figures(), spares=spares_by_task(self._state.agents))

    def figures(self) -> ct.CoordinatorFigures:
        meter = self._coordinator.meter
        return ct.CoordinatorFigures(
            window_s=meter.window_s,
            requests_per_s=meter.requests_per_s(),
            barrier_latency_p99_ms=meter.barrier_latency_p99_ms(),
            barrier_wait_p99_ms=meter.barrier_wait_p99_ms(),
            shard_assignment_ms=meter.shard_assignment_ms(),
            checkpoint_mb_per_s=meter.checkpoint_mb_per_s(),
            journal_commit_p99_ms=meter.journal_commit_p99_ms(),
            loop_lag_ms=meter.loop_lag_ms,
            requests_total=sum(meter.requests.values()),
            uptime_s=meter.uptime_s,
            requests_by_method=meter.requests,
            barrier_latency_buckets=meter.barrier_buckets,
            barrier_latency_sum_ms=meter.barrier_sum_ms,
            barrier_bucket_bounds_ms=BARRIER_BOUNDS_MS,
        )
