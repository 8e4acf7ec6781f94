"""What becomes of checkpoints is kept in the store, also of those that the records have no room for any more."""

import asyncio
from typing import Any, cast

from strata.clock import ManualClock
from strata.cluster.checkpoints import KEEP_REMOVED
from strata.cluster.events import CheckpointCommitted, CheckpointRemoved, Event, encode_event
from strata.observatory.answers.status import Status
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster.checkpoint_archive import CheckpointArchive
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch
from tests.support.answers import partly


def saved(step: int) -> CheckpointCommitted:
    return CheckpointCommitted(
        checkpoint_id=f"c{step}", task_id="t", attempt="", worker_id="w", step=step, epoch=0, storage_path=f"/{step}",
        size_bytes=4, type=0, duration_s=2.0, metadata={}, at=100.0 + step,
    )  # fmt: skip


def removed(step: int) -> CheckpointRemoved:
    return CheckpointRemoved(task_id="t", checkpoint_ids=(f"c{step}",), reason="newer ones exist", at=500.0)


async def test_the_removal_of_one_that_is_forgotten_at_once_is_kept() -> None:
    """The oldest of all goes last: it was pinned for long."""
    clock, kept = ManualClock(), list[Any]()

    async def accept(batch: Batch) -> None:
        kept.extend(batch.checkpoints)

    aside = SetAside(clock, lambda _: None)
    published = PublishedCluster(Broadcaster(lambda _: b"{}", clock), clock, lambda: partly(Status), aside)
    queue = BatchQueue(accept, aside)
    CheckpointArchive(published, queue, cast("Any", None))
    others = [event for step in range(1, KEEP_REMOVED + 1) for event in (saved(step), removed(step))]
    events: list[Event] = [saved(0), *others, saved(999), removed(0)]
    await queue.start()
    for seq, event in enumerate(events, 1):
        published.apply(seq, type(event).__name__, encode_event(event))
    async with asyncio.timeout(30):
        while len(kept) < len(events):  # noqa: ASYNC110 - kept by a task of its own
            await asyncio.sleep(0)
    await queue.stop()
    assert "c0" not in published.followed.records.checkpoints.records
    last = kept[-1]
    assert (last.id, last.status, last.reason) == ("c0", "removed", "newer ones exist")
    assert (last.event_time_ms, last.duration_s) == (100_001, 2.0), "the commit's date, and a moment later"
    assert not aside.view()
