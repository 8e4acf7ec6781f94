"""TensorBoard's scalars page on the same data: from the navigation to six drawn charts, the logs already loaded."""

import json
import math
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from benchmarks.measure import report
from benchmarks.scripts.first_charts import browser_page, names_of, visit

LOADED_WITHIN_S = 900.0
# An empty chart has axes from 0 to 1. A tick of 10 or more is on the step axis, so the points are drawn.
DRAWN = """(card) => card.querySelector('line-chart canvas') &&
  [...card.querySelectorAll('line-chart text')].some((tick) => Number(tick.textContent.replace(/,/g, '')) >= 10)"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write(folder: Path, runs: int, names: int, points: int) -> None:
    from tensorboardX import SummaryWriter

    for run in range(runs):
        with SummaryWriter(str(folder / f"run-{run:02d}")) as writer:
            for step in range(points):
                for number, name in enumerate(names_of(run, names)):
                    writer.add_scalar(name, math.sin(step / 20 + number) + run, step)


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


def measure(url: str) -> dict[str, float]:
    with browser_page() as page:
        return visit(page, f"{url}/#timeseries", card="scalar-card", drawn=DRAWN)


def main() -> None:
    runs, names, points, visits = (int(word) for word in sys.argv[1:5])
    cached = Path(tempfile.gettempdir()) / f"strata-bench-tensorboard-v3-{runs}-{names}-{points}"
    if not cached.exists():  # two million points take a minute to write: once is enough
        staged = Path(tempfile.mkdtemp())
        write(staged, runs, names, points)
        staged.rename(cached)
    port = free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(cached), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--reload_interval", "3600"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_loaded(url, runs, names)
        seen = [measure(url) for _ in range(visits)]
        figures = {name: statistics.median(one[name] for one in seen) for name in seen[0]}
        # It draws every run there is, whatever is asked for: this is its figure for all twenty.
        report(figures | {"twenty_runs_s": figures["interactive_s"]})
    finally:
        server.terminate()
        server.wait()


main()
