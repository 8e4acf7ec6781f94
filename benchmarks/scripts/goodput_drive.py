"""Trains the goodput job under one system, kills ranks by a schedule, and reports what that cost:
`goodput_drive.py SYSTEM [--rates 60,30,10] [--window S] [--pause S]`. benchmarks/goodput.py defines the figures.

It runs in the virtualenv of the system, whose interpreter is the ranks' interpreter. Systems are in goodput_systems.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import give_up, report
from benchmarks.scripts.goodput_job import RANKS
from benchmarks.scripts.goodput_ledger import Ledger, read, share
from benchmarks.scripts.goodput_systems import SYSTEMS, System, SystemFailed

_LOOK_S = 0.05
_PATIENCE_S = 180.0
_WARM_STEPS = 60
_AROUND_S = 5.0  # kills lie at least six seconds apart


class _Driver:
    """One job from its start to its end."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.killed: list[float] = []
        self.missed = 0

    def read(self) -> Ledger:
        return read(self._system.ledger)

    def warm_up(self) -> None:
        self._until(lambda: self.read().last >= _WARM_STEPS, f"step {_WARM_STEPS}")

    def pause(self, seconds: float) -> tuple[float, float]:
        """Leaves the job alone for so long, when it is as ready for a kill as it gets."""
        self._system.settle()
        start = time.time()
        self.sleep_until(start + seconds)
        self.settle(start + seconds)
        return start, start + seconds

    def sleep_until(self, moment: float) -> None:
        while (rest := moment - time.time()) > 0:
            time.sleep(min(rest, 1.0))
            self._system.check()

    def settle(self, moment: float) -> None:
        """Waits for a step that began after the moment."""
        self._until(lambda: self.read().next_step(moment) is not None, "a step after the kills")

    def kill(self, rank: int) -> None:
        """Kills that rank, or the next one that lives; when none does, the kill is missed."""
        pids = self.read().pids
        for number in range(rank, rank + RANKS):
            with contextlib.suppress(ProcessLookupError, KeyError):
                os.kill(pids[number % RANKS], signal.SIGKILL)
                self.killed.append(time.time())
                return
        self.missed += 1

    def _until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not condition():
            self._system.check()
            if time.monotonic() > deadline:
                raise SystemFailed(f"not within {_PATIENCE_S:g} s: {what}; last words: {self._system.last_words()}")
            time.sleep(_LOOK_S)


def schedule(every: float, window: float) -> Iterator[tuple[float, int]]:
    """(seconds from the window's start, rank) of each kill: the same for all systems. One in each interval, in the
    first half of it, so that the window sees what it costs."""
    chance = random.Random(f"goodput {every:g}")
    for start in range(0, round(window), round(every)):
        yield start + every * chance.uniform(0.1, 0.5), chance.randrange(RANKS)


def _window(driver: _Driver, every: float, window: float) -> tuple[float, float]:
    start = time.time()
    for offset, rank in schedule(every, window):
        driver.sleep_until(start + offset)
        driver.kill(rank)
    driver.sleep_until(start + window)
    return start, start + window


def _figures(
    driver: _Driver, pauses: list[tuple[float, float]], windows: dict[float, tuple[float, float]]
) -> dict[str, float]:
    ledger = driver.read()
    calm = [ledger.pace(pause) for pause in pauses]
    goodput = {
        f"goodput_{every:g}": ledger.pace(span) / ledger.pace(before, after)
        for (every, span), before, after in zip(windows.items(), pauses[:-1], pauses[1:], strict=True)
    }
    waits = [wait for moment in driver.killed if (wait := ledger.next_step(moment)) is not None]
    samples = ledger.samples()
    quick = len(waits) == len(driver.killed) and max(waits) < _AROUND_S
    costs = [ledger.cost(moment, _AROUND_S) for moment in driver.killed] if quick else []
    return {
        "step_s": 1 / ledger.pace(*pauses),
        "wander": (max(calm) - min(calm)) / ledger.pace(*pauses),
        **goodput,
        "next_step_p50_s": share(waits, 0.5),
        "next_step_p95_s": share(waits, 0.95),
        **({"kill_cost_s": sum(costs) / len(costs)} if costs else {}),
        "kills": len(driver.killed),
        "missed_kills": driver.missed,
        "redone_steps": ledger.redone(),
        "lost": samples.lost,
        "doubled": samples.doubled,
    }


def _drive(driver: _Driver, rates: list[float], window: float, pause: float) -> dict[str, float]:
    driver.warm_up()
    pauses, windows = [driver.pause(pause)], {}
    for every in rates:
        windows[every] = _window(driver, every, window)
        pauses.append(driver.pause(pause))
    return _figures(driver, pauses, windows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--server", default=sys.executable, help="the interpreter that Strata's own parts run in")
    parser.add_argument("--rates", default="60,30,10", help="a kill every so many seconds, one window for each")
    parser.add_argument("--window", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=20.0, help="seconds without kills around each window")
    parser.add_argument("--keep", type=Path, help="keep ledger and logs in this folder")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # the system goes with it
    with contextlib.ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="strata-bench-", ignore_cleanup_errors=True)
        folder = options.keep or Path(stack.enter_context(made))
        folder.mkdir(parents=True, exist_ok=True)
        system = SYSTEMS[options.system](folder, options.server)
        stack.callback(system.close)
        try:
            system.start()
            rates = [float(every) for every in options.rates.split(",")]
            report(_drive(_Driver(system), rates, options.window, options.pause))
        except SystemFailed as error:
            if system.ours:
                raise
            give_up(str(error))


if __name__ == "__main__":
    main()
