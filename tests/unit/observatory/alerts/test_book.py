"""Alerts: one per subject and while, also over a restart; shown at once, kept on disk."""

import asyncio
from pathlib import Path

from strata.clock import ManualClock
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.delivery_log import DeliveryLog
from strata.observatory.answers.alerts import Alert
from strata.observatory.background.setaside import SetAside
from strata.observatory.records.finding import Finding
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch

FINDING = Finding(kind="bad_loss", severity="critical", message="loss is nan", subject="s", run_id="r1", step=7)


def _log(folder: Path, clock: ManualClock) -> DeliveryLog:
    return DeliveryLog(folder / "alert-deliveries.json", SetAside(clock, lambda _: None))


async def test_an_alert_is_shown_kept_and_sent_once(tmp_path: Path) -> None:
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

    book = AlertBook(stream, clock, accept, _log(tmp_path, clock), notify)
    await book.start()
    book.report([FINDING, FINDING])
    book.report([FINDING])
    await asyncio.wait_for(done.wait(), 1)
    assert sent == ["loss is nan"]
    assert kept[0].events[0].step == 7
    assert not kept[0].events[0].HasField("rank")
    assert stream.last_seq == 1
    clock.advance(301)
    book.report([FINDING])
    assert len(book.newest()) == 2
    assert book.newest()[0].timestamp_ms >= book.newest()[1].timestamp_ms
    await book.stop()


def test_what_still_holds_after_a_restart_is_no_news_however_long_that_took(tmp_path: Path) -> None:
    clock = ManualClock()
    log = _log(tmp_path, clock)
    assert log.take_new([FINDING], clock.monotonic()) == [FINDING]
    log.write(log.plain())
    clock.advance(86_400)
    again = _log(tmp_path, clock)
    again.load(clock.monotonic())
    assert again.take_new([FINDING], clock.monotonic()) == []
    clock.advance(299)
    assert again.take_new([FINDING], clock.monotonic()) == []
    clock.advance(300)
    assert again.take_new([], clock.monotonic()) == []
    assert (again.found, again.changed) == ({}, True), "it is over, and the file will say so"
    assert again.take_new([FINDING], clock.monotonic()) == [FINDING]


def test_a_flood_is_not_remembered_whole(tmp_path: Path) -> None:
    log = _log(tmp_path, ManualClock())
    flood = [Finding(kind="k", severity="info", message="", subject=str(number)) for number in range(10_001)]
    assert len(log.take_new(flood, 0.0)) == 10_001
    assert log.take_new([flood[0], flood[-1]], 1.0) == [flood[0]]
