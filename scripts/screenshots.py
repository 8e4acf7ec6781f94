"""Pictures of every page of the dashboard, into docs/img: a real cluster, a real training job, a worker really killed.

    python scripts/screenshots.py [--only metrics,cluster] [--out folder]

Nothing in the pictures is simulated. They are quantised to 256 colours, so that the repository stays small.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests.support starts and stops a real `strata up`

from PIL import Image  # noqa: E402  # after the path
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402

from strata.config import Settings  # noqa: E402
from strata.demo.job import submit_stories  # noqa: E402
from tests.support.cluster import Cluster  # noqa: E402
from tests.support.waiting import eventually  # noqa: E402

WIDE, NARROW = (1440, 900), (390, 844)
THEMES = ("light", "dark")
# The theme is changed as a user does it, by the button in the top bar, when the page shows the other theme.
WEAR = """(theme) => {
  if (document.documentElement.dataset.theme !== theme) {
    document.querySelector(`header button[aria-label="Switch to ${theme} theme"]`).click();
  }
}"""
# A redraw is due within 100 ms of a change of size or theme (dashboard/src/data/frame.ts); two frames more paint it.
DRAWN = """() => new Promise((done) => {
  setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 300);
})"""
# Sparklines of the system's own numbers begin when the page is opened; they need three samples for a line.
HISTORY = "() => performance.now() > 3500"
MAX_BYTES = 250_000
README_PICTURE = "overview-dark"
SLOTS = "6"
TRAINING_S = 600.0
"""Deadline until the cluster has something to show; reached only on a machine that is far too busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One page: its address and what must be on it before the picture is taken."""

    name: str
    path: str
    ready: str = "main h1"
    click: str | None = None


def shots(task: str, worker: str) -> list[Shot]:
    return [
        Shot(name="overview", path="/", ready="main canvas"),
        Shot(name="runs", path="/ui/runs", ready="main table tbody tr"),
        Shot(name="run", path=f"/ui/runs/{task}", ready="main canvas"),
        Shot(name="metrics", path="/ui/metrics", ready="main canvas"),
        Shot(name="metrics-system", path="/ui/metrics?tab=system&ranks=all", ready="main canvas"),
        Shot(name="metrics-checkpoints", path="/ui/metrics?tab=checkpoints", ready="main table tbody tr"),
        Shot(name="metrics-progress", path="/ui/metrics?tab=progress", ready="[role=progressbar]"),
        Shot(name="metrics-full", path="/ui/metrics?m=loss&sm=0.6", ready="dialog canvas"),
        Shot(name="cluster", path="/ui/cluster", ready="main table tbody tr"),
        Shot(name="cluster-shards", path="/ui/cluster?view=shards", ready="main [role=progressbar]"),
        Shot(name="cluster-barriers", path="/ui/cluster?view=barriers", ready="main table tbody tr"),
        Shot(name="cluster-heatmap", path="/ui/cluster?view=heatmap", ready="main canvas"),
        Shot(name="worker", path=f"/ui/cluster/{worker}", ready="main canvas"),
        Shot(name="data", path="/ui/data", ready="[aria-label=Samples]"),
        Shot(name="checkpoints", path="/ui/checkpoints", ready="main table tbody tr"),
        Shot(name="tasks", path="/ui/tasks", ready="main table tbody tr"),
        Shot(name="task", path=f"/ui/tasks/{task}", ready="[data-status]"),
        Shot(name="task-new", path="/ui/tasks", ready="dialog form", click="text=New task"),
        Shot(name="logs", path="/ui/logs", ready="[data-log]"),
        Shot(name="alerts", path="/ui/alerts", ready="main li"),
        Shot(name="incident", path="/ui/alerts", ready="dialog table", click="main li button"),
        Shot(name="settings", path="/ui/settings"),
    ]


EMPTY = [
    Shot(name="overview-empty", path="/"),
    Shot(name="metrics-empty", path="/ui/metrics"),
    Shot(name="tasks-empty", path="/ui/tasks"),
]


def chromium() -> str:
    found = os.environ.get("STRATA_CHROMIUM") or shutil.which("chromium")
    if not found:
        raise SystemExit("chromium was not found: install it, or name it in STRATA_CHROMIUM")
    return found


def ready(cluster: Cluster) -> bool:
    return cluster.get("/api/status")["metric_store_problem"] is None


def finished(cluster: Cluster, task: str) -> bool:
    return bool(cluster.get(f"/api/tasks/{task}")["status"] == "completed")


def workers_of(cluster: Cluster, task: str) -> list[dict[str, Any]]:
    found = [one for one in cluster.get("/api/workers") if one["current_task"] == task and one["status"] == "active"]
    return sorted(found, key=lambda one: one["rank"])


def train(cluster: Cluster) -> tuple[str, str]:
    """A short run that ends, then the long one; a worker of it is killed and comes back. The task and a worker's id."""
    settings, address = Settings(data_dir=cluster.folder), cluster.endpoints["grpc"]
    short = submit_stories(settings, address, name="stories-trial", num_workers=2, steps=100, pause_s=0.0).task_id
    eventually("the end of the short run", lambda: finished(cluster, short), within_s=TRAINING_S)
    task = submit_stories(settings, address, steps=100_000).task_id
    eventually("four workers", lambda: len(workers_of(cluster, task)) == 4, within_s=TRAINING_S)
    eventually("three checkpoints", lambda: len(saved(cluster, task)) >= 3, within_s=TRAINING_S)
    os.kill(pid_of(cluster, workers_of(cluster, task)[2]["id"]), signal.SIGKILL)
    eventually("the second attempt", lambda: cluster.get(f"/api/tasks/{task}")["attempt"] == 2, within_s=TRAINING_S)
    eventually("four workers again", lambda: len(workers_of(cluster, task)) == 4, within_s=TRAINING_S)
    before = len(saved(cluster, task))
    eventually("new checkpoints", lambda: len(saved(cluster, task)) >= before + 3, within_s=TRAINING_S)
    return task, str(workers_of(cluster, task)[1]["id"])


def saved(cluster: Cluster, task: str) -> list[dict[str, Any]]:
    """Those that retention has removed since count as well."""
    ended = ("completed", "removed")
    return [one for one in cluster.get("/api/checkpoints") if one["task_id"] == task and one["status"] in ended]


def pid_of(cluster: Cluster, worker: str) -> int:
    from strata.client.channel import Channel
    from strata.client.records import RecordsClient

    with Channel(cluster.endpoints["grpc"]) as channel:
        workers = RecordsClient(channel).workers()
    return next(int(one.metadata["pid"]) for one in workers if one.worker_id == worker)


def pictures(page: Page, shot: Shot, base: str, out: Path) -> None:
    """Loaded once; then both themes at both widths."""
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    page.goto(base + shot.path)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=30_000)
    if shot.click:
        page.locator(shot.click).first.click()
    expect(page.locator(shot.ready).first).to_be_visible(timeout=30_000)
    expect(page.get_by_label("Loading")).to_have_count(0, timeout=30_000)
    page.wait_for_function(HISTORY, timeout=30_000)
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            page.evaluate(WEAR, theme)
            page.wait_for_function(DRAWN)
            target = out / f"{shot.name}-{theme}{'' if width == WIDE[0] else f'-{width}'}.png"
            page.screenshot(path=target)
            shrink(target)
            sys.stdout.write(f"{target.name}\n")
            sys.stdout.flush()


def shrink(path: Path) -> None:
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_BYTES:,} are wanted")


def album(browser: Browser, base: str, wanted: list[Shot], out: Path) -> None:
    context = browser.new_context(color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    for shot in wanted:
        pictures(page, shot, base, out)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of pages, separated by commas")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = set(options.only.split(",")) if options.only else None

    def keep(list_: list[Shot]) -> list[Shot]:
        return [shot for shot in list_ if chosen is None or shot.name in chosen]

    with tempfile.TemporaryDirectory(prefix="strata-pictures-") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())
        with Cluster(Path(folder), "--slots", SLOTS) as cluster:
            eventually("the metric store", lambda: ready(cluster), within_s=TRAINING_S)
            base = cluster.endpoints["http"]
            album(browser, base, keep(EMPTY), options.out)
            if keep(shots("task", "worker")):
                task, worker = train(cluster)
                album(browser, base, keep(shots(task, worker)), options.out)
        browser.close()
    if (options.out / f"{README_PICTURE}.png").exists():
        shutil.copyfile(options.out / f"{README_PICTURE}.png", options.out / "overview.png")


if __name__ == "__main__":
    main()
