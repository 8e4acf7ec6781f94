"""More workers than a page is told by name: the map, who is slow, the table, the heatmap, and a worker of it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_tour import AXE, CHECK, SIDEWAYS, TO_DARK
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow
HOSTS, RANKS = 70, 560


class Played:
    """A fleet that `benchmarks/scripts/fleet_feed.py` plays on real connections."""

    def __init__(self, cluster: Cluster, task: str) -> None:
        self.url, self.task = cluster.endpoints["http"], task


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("fleet")
    with Cluster(folder, "--no-agent") as cluster:
        eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=120)
        script = Path(__file__).resolve().parents[2] / "benchmarks" / "scripts" / "fleet_feed.py"
        token = (folder / "token").read_text().strip()
        command = [sys.executable, str(script), cluster.endpoints["grpc"], token, cluster.endpoints["http"], str(HOSTS)]
        root = str(script.parents[2])
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
        ) as feed:
            try:
                assert feed.stdout is not None
                yield Played(cluster, feed.stdout.readline().split()[1])
            finally:
                feed.kill()


def test_the_map_and_the_rows_of_a_fleet(page: Page, fleet: Played) -> None:
    page.goto(f"{fleet.url}/ui/cluster")
    expect(page.locator(f"canvas[data-fleet='{RANKS}']")).to_be_visible()
    rows = page.get_by_role("region", name="Workers").locator("tbody tr[aria-rowindex]")
    expect(rows.first).to_contain_text("host-0")
    assert rows.count() < 60, "rows that nobody sees are not there"
    page.get_by_label("Filter workers").fill("host-69")
    expect(page.get_by_text("8 workers", exact=True)).to_be_visible()
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text("No worker matches")).to_be_visible()
    picture = page.get_by_role("application", name=re.compile("Map of the fleet"))
    picture.focus()
    picture.press("ArrowRight")
    picture.press("ArrowRight")
    picture.press("Enter")
    expect(page.get_by_role("heading", name=f"{fleet.task}-1", exact=True)).to_be_visible()
    expect(page.get_by_text("host-0").first).to_be_visible()


def test_the_heatmap_goes_from_all_ranks_to_one(page: Page, fleet: Played) -> None:
    page.goto(f"{fleet.url}/ui/cluster?view=heatmap")
    canvas = page.locator("canvas[data-heat]")
    expect(canvas).to_be_visible()
    expect(page.get_by_text(f"{RANKS} ranks", exact=False).first).to_be_visible()
    before = int(canvas.get_attribute("data-heat") or 0)
    eventually("it moves", lambda: int(canvas.get_attribute("data-heat") or 0) > before, within_s=60)
    picture = page.get_by_role("application", name=re.compile("Heatmap of step_time"))
    picture.focus()
    picture.press("ArrowDown")
    picture.press("Enter")
    expect(page.get_by_role("button", name="All ranks")).to_be_visible()
    picture.press("Escape")
    expect(page.get_by_role("button", name="All ranks")).to_have_count(0)


@pytest.mark.parametrize("path", ["/ui/cluster", "/ui/cluster?view=heatmap", "/ui/tasks/{task}"])
def test_axe_finds_nothing_in_a_fleet_and_a_phone_needs_no_sideways_scrolling(
    page: Page, fleet: Played, path: str
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(fleet.url + path.format(task=fleet.task))
    expect(page.locator("canvas[data-fleet], canvas[data-heat]")).to_be_visible()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(CHECK, None) == []
    page.evaluate(TO_DARK)
    assert page.evaluate(CHECK, ["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert not page.evaluate(SIDEWAYS)


def test_search_finds_workers_that_the_page_was_never_told_of(page: Page, fleet: Played) -> None:
    page.goto(f"{fleet.url}/ui/metrics")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name=re.compile("Search"))
    box.fill("rank 557")
    expect(page.get_by_role("option")).to_have_count(1)
    box.fill(f"{fleet.task}-41")
    expect(page.get_by_role("option").filter(has_text="rank 419")).to_be_visible()
    box.fill("nobody-is-called-so")
    expect(page.get_by_text("Nothing is called")).to_be_visible()
    box.fill("worker rank 558")
    expect(page.get_by_role("option").filter(has_text="rank 558")).to_be_visible()
    box.press("Enter")
    expect(page.get_by_role("heading", name=f"{fleet.task}-558", exact=True)).to_be_visible()


def test_a_worker_that_is_not_in_the_stream_has_its_own_curves(page: Page, fleet: Played) -> None:
    """The stream carries 16 ranks of a metric that all have; the page of another one asks for its own."""

    def log(step: int) -> None:
        points = [{"metric": "own", "rank": rank, "step": step, "value": rank * step} for rank in range(RANKS)]
        httpx.post(f"{fleet.url}/api/runs/{fleet.task}/points", json={"points": points}, timeout=60).raise_for_status()

    log(1)
    page.goto(f"{fleet.url}/ui/cluster/{fleet.task}-558")
    card = page.locator("article[data-metric='own']")
    expect(card.get_by_test_id("latest")).to_have_text("558")
    log(2)
    expect(card.get_by_test_id("latest")).to_have_text("1,116")
    expect(card.get_by_text("have not logged this")).to_have_count(0)
    expect(page.locator("article[data-metric='step_time']").get_by_test_id("latest")).to_have_text(
        re.compile(r"^0\.\d+$")
    )
    page.goto(f"{fleet.url}/ui/cluster/{fleet.task}-0")
    expect(card.get_by_test_id("latest")).to_have_text("0")
