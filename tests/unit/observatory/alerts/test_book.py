"""Alerts: one per subject and while, shown at once, kept on disk."""

import asyncio

from strata.clock import ManualClock
from strata.observatory.alerts.book import AlertBook
from strata.observatory.answers.alerts import Alert
from strata.observatory.records.finding import Finding
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch


async def test_an_alert_is_shown_kept_and_sent_once() -> None:
    clock = ManualClock()
    stream = Broadcaster(lambda _: b"{}", clock)
    kept: list[Batch] = []
    sent: list[str] = []
    done = asyncio.Event()

    async def accept(batch: Batch) -> None:
        kept.append(batch)
        done.set()

    def notify(alert: Alert) -> None:
        sent.append(alert.message)

    book = AlertBook(stream, clock, accept, notify)
    await book.start()
    finding = Finding(kind="bad_loss", severity="critical", message="loss is nan", subject="s", run_id="r1", step=7)
    book.report([finding, finding])
    book.report([finding])
    await asyncio.wait_for(done.wait(), 1)
    assert sent == ["loss is nan"]
    assert kept[0].events[0].step == 7
    assert not kept[0].events[0].HasField("rank")
    assert stream.last_seq == 1
    clock.advance(301)
    book.report([finding])
    assert len(book.newest()) == 2
    assert book.newest()[0].timestamp_ms >= book.newest()[1].timestamp_ms
    await book.stop()
