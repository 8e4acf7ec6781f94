"""When an engine is taken for one that will never answer."""

import math
import os
import subprocess
import sys
from collections.abc import Iterable

import pytest

from strata.observatory.store.standstill import Standstill, busy_s
from tests.support.waiting import eventually


def _looks(asked_at: float | None, busy: Iterable[float], gap_s: float = 3.0) -> list[str | None]:
    standstill = Standstill()
    return [standstill.look(asked_at, asked_at, busy_s, number * gap_s) for number, busy_s in enumerate(busy)]


def test_who_writes_may_wait_for_the_disk() -> None:
    standstill = Standstill()
    looks = [standstill.look(0.0, None, 7.0, 3.0 * number) for number in range(101)]
    assert looks[:-1] == [None] * 100
    assert looks[-1] == "a request has had no answer for 300 s"


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_question_that_waits_while_little_is_done_ends_it(share: float) -> None:
    looks = _looks(1.0, [7.0 + number * 3.0 * share for number in range(7)])
    assert looks[:-1] == [None] * 6
    assert looks[-1] == "it stands still, with a question that waits for 17 s"


def test_an_idle_engine_that_nobody_asks_is_left_alone() -> None:
    assert set(_looks(None, [7.0] * 200)) == {None}


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_who_works_has_time_but_not_for_ever(share: float) -> None:
    looks = _looks(0.0, [number * 3.0 * share for number in range(101)])
    assert looks[:-1] == [None] * 100
    assert looks[-1] == "a request has had no answer for 300 s"


def test_what_the_system_does_not_say_ends_nobody() -> None:
    assert set(_looks(0.0, [math.nan] * 99)) == {None}


def test_after_a_pause_of_our_own_its_time_begins_anew() -> None:
    standstill = Standstill()
    assert [standstill.look(0.0, 0.0, 7.0, now) for now in (0.0, 3.0, 900.0, 903.0, 906.0)] == [None] * 5
    assert [standstill.look(0.0, 0.0, 7.0, now) for now in (909.0, 912.0, 915.0)][-1] is not None


def test_a_process_is_busy_while_it_runs_and_not_while_it_sleeps() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        before = busy_s(process.pid)
        eventually("it has run", lambda: busy_s(process.pid) > before + 0.05 or None)
        process.kill()
    assert math.isnan(busy_s(process.pid))
    assert busy_s(os.getpid()) > 0
