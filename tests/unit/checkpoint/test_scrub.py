"""The scrub reads chunk by chunk, gives way to saves, and ends half way when its manager is closed."""

import threading

from strata.checkpoint.reader import Progress
from strata.checkpoint.scrub import Scrubber
from tests.support.waiting import eventually


def test_it_reads_nothing_during_a_save_and_ends_when_it_is_closed() -> None:
    order: list[str] = []
    saving = threading.Event()

    def check(step: int, progress: Progress) -> None:
        order.append(f"chunk of {step}")
        saving.wait(30)
        for number in range(1, 1_000_000):
            progress(number, 1_000_000)
            order.append("another")

    scrubber = Scrubber(check, mb_s=1e-3)
    with scrubber.held():
        scrubber.look_at(1)
        scrubber.look_at(2)
        order.append("saved")
    eventually("the first chunk", lambda: len(order) == 2)
    with scrubber.held():
        saving.set()
        order.append("saved")
    eventually("more chunks", lambda: len(order) > 5)
    scrubber.close()
    assert order[:5] == ["saved", "chunk of 2", "saved", "another", "another"]


def test_a_rate_of_0_is_never() -> None:
    scrubber = Scrubber(lambda step, progress: progress(0, 0), mb_s=0.0)
    scrubber.look_at(1)
    scrubber.close()
    assert "checkpoint-scrub" not in {thread.name for thread in threading.enumerate()}
