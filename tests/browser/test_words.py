"""What docs/specification.md lists about the page: tabs by prefix, badges, timeline, log levels and filters, the grid
of workers with their GPUs. A small cluster of its own, with points and workers that the test made itself.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from playwright.sync_api import Page, expect

from strata.protocol.generated.coordinator_pb2 import (
    GpuUsage,
    HeartbeatRequest,
    ResourceUsage,
    WorkerInfo,
    WorkerStatus,
)
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
TABS = {
    "Training": ["loss_t1", "throughput/tokens_per_sec", "token_accuracy"],
    "Model": ["moe/aux_loss", "gsa_gate", "recurrence_depth", "null_ratio"],
    "System": ["sys.gpu.0.util_percent", "sys.cpu_percent", "net_rx_bytes", "gpu_idle_time"],
}
_FINISHED = """
import strata
run = strata.init(name="over", run_id="over")
run.log({"loss_t1": 0.5}, step=1)
run.finish()
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("lab") / "data"
    with Cluster(folder, "--no-agent", environment={"HEARTBEAT_TIMEOUT": "5"}) as running:
        names = [name for part in TABS.values() for name in part] + ["checkpoint_save", "progress/percent"]
        points = [{"metric": name, "step": step, "value": step} for name in names for step in (1, 2)]
        running.post("/api/runs/live/points", {"points": points})
        day = [{"metric": "loss_t1", "step": 1, "value": 1, "event_time": time.time() - 86_500}]
        running.post("/api/runs/yesterday/points", {"points": day})
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "STRATA_DATA_DIR": str(folder)}
        subprocess.run([sys.executable, "-c", _FINISHED], env=environment, check=True, timeout=60)
        with _workers(running):
            yield running


@contextmanager
def _workers(lab: Cluster) -> Iterator[None]:
    """One whose GPUs are at 90 %, and one that falls silent and is lost."""
    usage = [GpuUsage(gpu_id=n, utilization_percent=90.0, memory_used_bytes=1, memory_total_bytes=2) for n in range(2)]
    with grpc.insecure_channel(lab.endpoints["grpc"]) as channel:
        stub = CoordinatorStub(channel)
        stub.RegisterWorker(WorkerInfo(worker_id="dies"))
        stub.RegisterWorker(WorkerInfo(worker_id="busy", gpu_count=2))
        beat = HeartbeatRequest(
            worker_id="busy",
            status=WorkerStatus(state=WorkerStatus.State.TRAINING, current_step=3),
            resources=ResourceUsage(cpu_percent=10, gpu_usage=usage, disk_write_bytes=3_070_000),
        )
        over = threading.Event()

        def live() -> None:
            while not over.wait(0.5):
                stub.Heartbeat(beat)

        thread = threading.Thread(target=live)
        thread.start()
        try:
            look = "/api/logs?worker_id=dies&level=error"
            eventually("the loss of the silent one", lambda: lab.get(look), within_s=60)
            yield
        finally:
            over.set()
            thread.join()


def _open(page: Page, lab: Cluster, path: str) -> None:
    page.goto(lab.endpoints["http"] + path)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")


def test_five_tabs_by_the_prefix_of_a_metric(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/metrics?runs=live")
    expect(page.get_by_role("tab")).to_have_count(6)  # Media is none of a prefix
    for tab, names in TABS.items():
        page.get_by_role("tab", name=re.compile(f"^{tab}")).click()
        for name in names:
            expect(page.locator(f"article[data-metric='{name}']")).to_be_visible()
    page.get_by_role("tab", name=re.compile("^Checkpoints")).click()
    expect(page.get_by_role("region", name="Checkpoints of the runs on show")).to_contain_text("live")
    page.get_by_role("tab", name=re.compile("^Progress")).click()
    expect(page.get_by_role("progressbar").first).to_be_visible()


def test_badges_toggle_runs_and_show_who_is_active(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/metrics")
    runs = page.get_by_role("group", name="Runs")
    badge = runs.locator("[data-run=over]")
    expect(badge).to_have_attribute("aria-pressed", "true")
    expect(badge).to_contain_text("finished")
    expect(runs.locator("[data-run=live]")).to_contain_text("running")
    colours = [
        runs.locator(f"[data-run={run}] span.rounded-full").last.evaluate(
            "one => getComputedStyle(one).backgroundColor"
        )
        for run in ("live", "over")
    ]
    assert colours[0] != colours[1], "a filled dot is active, a hollow one is not"
    badge.click()
    expect(badge).to_have_attribute("aria-pressed", "false")
    runs.get_by_role("button", name="None").click()
    expect(runs).to_contain_text("0 of 3 runs")
    runs.get_by_role("button", name="All").click()
    expect(runs).to_contain_text("3 of 3 runs")
    expect(page.locator("article[data-metric=loss_t1] canvas")).to_be_visible()


def test_the_timeline_scopes_the_charts(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/metrics?runs=yesterday")
    card = page.locator("article[data-metric=loss_t1]")
    timeline = page.get_by_role("group", name="Timeline")
    for span in ("1h", "6h", "24h"):
        timeline.get_by_role("button", name=span, exact=True).click()
        expect(card).to_contain_text("Nothing in this time range")
    for span in ("7d", "All"):
        timeline.get_by_role("button", name=span, exact=True).click()
        expect(card).not_to_contain_text("Nothing in this time range")


def test_levels_are_colour_coded(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/logs")
    lines = page.get_by_role("log").locator("[data-log]")
    lost = lines.filter(has_text="worker dies lost").first
    joined = lines.filter(has_text="worker busy joined").first
    expect(lost).to_be_visible()
    expect(joined).to_be_visible()
    colour = """line => {
        const level = [...line.querySelectorAll("span")].find((one) => /^(info|error)$/i.test(one.textContent));
        return getComputedStyle(level).color;
    }"""
    assert lost.evaluate(colour) != joined.evaluate(colour)


def test_logs_are_filtered_by_task_and_worker(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/logs?worker=dies")
    lines = page.get_by_role("log").locator("[data-log]")
    expect(lines.filter(has_text="worker dies lost").first).to_be_visible()
    expect(lines.filter(has_text="worker busy")).to_have_count(0)
    expect(page.get_by_label("Worker", exact=True)).to_be_visible()
    expect(page.get_by_label("Task", exact=True)).to_be_visible()


def test_the_heatmap_shows_status_and_gpu_use(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/cluster")
    expect(page.locator("main [data-status=active]").first).to_be_visible()
    expect(page.locator("main [data-status=failed]").first).to_be_visible()
    line = page.get_by_role("region", name="Workers", exact=True).get_by_role("row").filter(has_text="busy")
    expect(line).to_contain_text("90%")


def test_a_workers_page_shows_its_disk_and_gpus(page: Page, lab: Cluster) -> None:
    _open(page, lab, "/ui/cluster/busy")
    expect(page.get_by_text("3.07 MB written")).to_be_visible()
    expect(page.locator("dt:text-is('GPU 1') + dd")).to_contain_text("90%")
