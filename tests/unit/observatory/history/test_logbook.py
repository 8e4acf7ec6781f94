"""What a tick tells the pages of new log lines: all of them, and of a flood the worst and the newest, with a count."""

from strata.observatory.batch.columns import decode
from strata.observatory.history.logbook import LogBook
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.supervised import SupervisedStore
from strata.protocol.generated.telemetry_pb2 import Batch


def _book(*lines: tuple[str, str]) -> LogBook:
    message = Batch(batch_id="b")
    for number, (level, text) in enumerate(lines):
        message.logs.add(event_time_ms=1_794_000_000_000 + number, level=level, message=text, source="worker")
    book = LogBook(SupervisedStore(StoreConfig(path="", database="d")))  # never started, never asked
    book.take(decode(message.SerializeToString()))
    return book


def test_a_tick_tells_every_line_once() -> None:
    book = _book(("info", "a"), ("error", "b"), ("debug", "c"))
    news = book.drain()
    assert ([line.message for line in news.logs], news.skipped) == (["a", "b", "c"], 0)
    assert (book.drain().logs, book.drain().skipped) == ([], 0)


def test_of_a_flood_the_worst_and_the_newest_are_told_in_order_and_the_rest_is_counted() -> None:
    flood = [("info", f"i{number}") for number in range(3_000)]
    flood[5], flood[6] = ("error", "first cause"), ("warn", "odd")
    news = _book(*flood).drain()
    assert (len(news.logs), news.skipped) == (1_000, 2_000)
    assert [line.message for line in news.logs] == ["first cause", "odd", *(f"i{n}" for n in range(2_002, 3_000))]


def test_long_lines_are_weighed_too() -> None:
    news = _book(*(("info", f"{number:03}" + "x" * 9_997) for number in range(300))).drain()
    assert [line.message[:3] for line in news.logs] == [f"{number:03}" for number in range(196, 300)]
    assert news.skipped == 196
