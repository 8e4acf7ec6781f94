"""Follows how runs stand: a change is on the stream within two seconds, and an end that nobody else has written down
(a kill, a silence, a task that failed) is kept in the store, so that a restart knows it."""

import asyncio
import uuid

from strata.clock import Clock
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.part import Part
from strata.observatory.background.setaside import SetAside
from strata.observatory.live.view import LiveView
from strata.protocol.generated.telemetry_pb2 import Batch

__all__ = ["RunEnds"]

_LOOK_S = 2.0


class RunEnds(Part):
    """One task that looks at all runs."""

    def __init__(self, live: LiveView, queue: BatchQueue, clock: Clock, aside: SetAside) -> None:
        self._live = live
        self._queue = queue
        self._clock = clock
        self._aside = aside

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._live.is_whole:  # before, what the runs said of themselves is not read yet
                with self._aside.guard("run states", "the look at all runs"):
                    self._look()

    def _look(self) -> None:
        changed = self._live.runs.look()
        if not changed:
            return
        self._live.publish_runs()
        for run_id in changed:
            info = self._live.runs.info(run_id)
            if info is not None and not info.is_active and info.status not in (None, info.state):
                batch = Batch(batch_id=f"run-end-{uuid.uuid4().hex}")
                now_ms = round(self._clock.wall() * 1000)
                batch.runs.add(run_id=run_id, status=info.state, reason=info.reason or "", updated_at_ms=now_ms)
                self._queue.put(batch)
