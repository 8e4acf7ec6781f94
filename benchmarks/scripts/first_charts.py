"""One visit of a page full of charts: when the first, the sixth and the last chart of the first screen was painted.

The same data and the same watch for every dashboard: it looks once per frame, before the page's own code, and takes the
time after the frame is on the screen. The browser is a new one, and at rest when it is sent to the page. Imported by
the benchmark and by its peers' scripts, each in its own virtualenv.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["SHARED", "browser_page", "names_of", "visit"]

WINDOW = {"width": 1440, "height": 1900}
SHARED = 20
_WITHIN_MS = 120_000
_STILL_MS = 1_500
_LOOK_MS = 250
_STARTED_WITHIN_S = 30.0
_IDLE_CPU_S = 0.02

# `drawn(card)` is the page's own idea of a chart with its lines. A card counts when any of it is on the screen. The
# last chart is the one after which none came for a while: pages mount cards as they go.
_WATCH = """(() => {
  const drawn = %s;
  const log = (window.__charts = { first: null, six: null, screen: null, count: 0 });
  const channel = new MessageChannel();
  let found = 0;
  channel.port1.onmessage = () => {
    const now = performance.now();
    if (found > log.count) Object.assign(log, { count: found, screen: now });
    if (found >= 1) log.first ??= now;
    if (found >= 6) log.six ??= now;
  };
  const frame = () => {
    found = [...document.querySelectorAll(%r)].filter((card) => {
      const box = card.getBoundingClientRect();
      return box.width > 0 && box.bottom > 0 && box.top < innerHeight && drawn(card);
    }).length;
    channel.port2.postMessage(0);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})()"""


def names_of(run: int, count: int) -> list[str]:
    """The metrics of a run. Runs differ in their names; the first SHARED of them are in every run."""
    first = (SHARED, SHARED + count, SHARED, count // 2)[run % 4]
    numbers = [*range(SHARED), *range(first, first + count - SHARED)]
    return [f"bench/{number:04d}" for number in numbers]


@contextmanager
def browser_page(*flags: str) -> Iterator[Any]:
    """A page of a browser that has cached nothing, and that has come up itself: the renderer of its own window takes
    0.3 to 0.5 s of CPU at its start (traced), which on two cores the page would pay for."""
    from playwright.sync_api import sync_playwright

    binary = os.environ.get("STRATA_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=list(flags))
        page = browser.new_context(viewport=WINDOW, color_scheme="light").new_page()  # type: ignore[arg-type]  # a plain dict
        _wait_until_idle(browser, page)
        yield page
        browser.close()


def _wait_until_idle(browser: Any, page: Any) -> None:
    session = browser.new_browser_cdp_session()

    def used_s() -> float:
        return sum(float(one["cpuTime"]) for one in session.send("SystemInfo.getProcessInfo")["processInfo"])

    until, used = time.monotonic() + _STARTED_WITHIN_S, used_s()
    while time.monotonic() < until:
        page.wait_for_timeout(_LOOK_MS)
        before, used = used, used_s()
        if used - before < _IDLE_CPU_S:
            break
    session.detach()


def visit(page: Any, address: str, *, card: str, drawn: str) -> dict[str, float]:
    """Opens the address and follows it until its first screen stands still. Times in seconds since the navigation."""
    page.add_init_script(_WATCH % (drawn, card))
    page.goto(address, wait_until="commit")
    page.wait_for_function("() => window.__charts.six !== null", polling=100, timeout=_WITHIN_MS)
    still = f"() => performance.now() - window.__charts.screen > {_STILL_MS}"
    page.wait_for_function(still, polling=100, timeout=_WITHIN_MS)
    log = page.evaluate("window.__charts")
    picture = os.environ.get("STRATA_BENCH_PICTURES")
    if picture:
        Path(picture).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(picture) / f"{card.replace('[', '').replace(']', '')}.png"))
    return {
        "first_chart_s": log["first"] / 1000,
        "interactive_s": log["six"] / 1000,
        "first_screen_s": log["screen"] / 1000,
        "first_screen_charts": float(log["count"]),
    }
