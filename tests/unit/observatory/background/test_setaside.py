"""What was set aside: counted per item, told to people once per reason, and in the log once."""

from pathlib import Path

import pytest

from strata.clock import ManualClock
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.delivery_log import DeliveryLog
from strata.observatory.background.setaside import SetAside
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch


async def _accept(batch: Batch) -> None: ...


def test_each_item_is_in_the_log_once_whether_it_is_an_alert_or_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    aside = SetAside(clock, lambda findings: book.report(findings))
    log = DeliveryLog(tmp_path / "alert-deliveries.json", aside)
    book = AlertBook(Broadcaster(lambda _: b"{}", clock), clock, _accept, log, lambda _: None)
    for item in ("row 1", "row 2", "row 1"):
        aside.note("store", item, "value is too bad")
    assert caplog.messages == [
        "alert: store sets row 1 aside: value is too bad",
        "store sets row 2 aside: value is too bad",
    ]
    assert [alert.message for alert in book.newest()] == ["store sets row 1 aside: value is too bad"]
    assert aside.view()[0].count == 2
