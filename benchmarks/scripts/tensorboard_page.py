"""TensorBoard's scalars page on the same data: from the navigation to six drawn charts, the logs already loaded."""

import json
import math
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from benchmarks.measure import report

LOADED_WITHIN_S = 900.0
DRAWN = "() => document.querySelectorAll('scalar-card line-chart, scalar-card .chart').length >= 6"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write(folder: Path, runs: int, names: int, points: int) -> None:
    from tensorboardX import SummaryWriter

    for run in range(runs):
        with SummaryWriter(str(folder / f"run-{run:02d}")) as writer:
            for step in range(points):
                for number in range(names):
                    writer.add_scalar(f"bench/{number:04d}", math.sin(step / 20 + number) + run, step)


def wait_loaded(url: str, runs: int, names: int) -> None:
    deadline = time.monotonic() + LOADED_WITHIN_S
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{url}/data/plugin/scalars/tags", timeout=60) as answer:  # noqa: S310  # our own loopback server
                tags = json.load(answer)
            if len(tags) == runs and all(len(one) >= names for one in tags.values()):
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit("tensorboard did not load the logs in time")


def measure(url: str) -> float:
    from playwright.sync_api import sync_playwright

    binary = os.environ.get("STRATA_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary)
        page = browser.new_context(viewport={"width": 1440, "height": 1900}).new_page()
        page.goto(f"{url}/#timeseries", wait_until="commit")
        page.wait_for_function(DRAWN, polling="raf", timeout=60_000)
        took = float(page.evaluate("performance.now()")) / 1000
        browser.close()
        return took


def main() -> None:
    runs, names, points, visits = (int(word) for word in sys.argv[1:5])
    cached = Path(tempfile.gettempdir()) / f"strata-bench-tensorboard-{runs}-{names}-{points}"
    if not cached.exists():  # two million points take a minute to write: once is enough
        staged = Path(tempfile.mkdtemp())
        write(staged, runs, names, points)
        staged.rename(cached)
    port = free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(cached), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--load_fast", "false", "--reload_interval", "3600"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_loaded(url, runs, names)
        report({"interactive_s": statistics.median(measure(url) for _ in range(visits))})
    finally:
        server.terminate()
        server.wait()


main()
