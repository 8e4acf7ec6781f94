"""Every page shows what the REST API says at the same moment. The training task is real and moves while we look."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site, number, row, stat
from tests.support.waiting import eventually

pytestmark = pytest.mark.browser


def test_overview(page: Page, site: Site) -> None:
    site.open(page, "/")
    site.agree_on_step(stat(page, "Step"))
    expect(page.get_by_role("link", name=site.task, exact=True)).to_be_visible()
    cells = page.locator("main [data-status]")
    expect(cells).to_have_count(4)
    for worker in site.workers():
        expect(cells.filter(has_text=f"rank {worker['rank']}")).to_have_count(1)
    checkpoint = page.locator("section", has=page.get_by_role("heading", name="Last checkpoint"))
    site.agree("newest checkpoint", checkpoint, lambda: f"step {(site.newest_checkpoint() or {})['step']:,}")
    progress = stat(page, "Progress")
    eventually("progress", lambda: abs(number(progress.inner_text()) - site.status()["progress"]) < 0.2)


def test_overview_tiles(page: Page, site: Site) -> None:
    site.open(page, "/")
    for figure in ("checkpoint_throughput", "coordinator_rps", "barrier_latency_p99", "shard_assignment_time"):
        agree_on_tile(page, site, figure)


def agree_on_tile(page: Page, site: Site, figure: str) -> None:
    value = page.get_by_test_id(figure).locator("p").nth(1)

    told: set[float] = set()

    def agree() -> bool:
        """The figure changes every second and the page is behind: it shows one of the values that the server had."""
        told.update(one for one in (site.get("/api/metrics")[figure],) if one is not None)
        shown = number(value.inner_text())
        return any(abs(shown - one) <= max(0.051, 0.005 * one) for one in told)

    expect(value).to_contain_text(re.compile(r"\d"))
    eventually(f"the tile of {figure} agrees with the server", agree)
    expect(page.get_by_test_id(figure).get_by_role("img")).to_be_visible()


def test_runs_and_run(page: Page, site: Site) -> None:
    site.open(page, "/ui/runs")
    told = next(one for one in site.get("/runs") if one["run_id"] == site.task)
    line = row(page, "Runs", site.task)
    expect(line).to_contain_text("running")
    line.get_by_role("link", name=site.task).first.click()
    expect(page.get_by_role("heading", level=1, name=site.task)).to_be_visible()
    facts = page.locator("main dl").first
    shown = number(facts.locator("dt:text-is('Step') + dd").inner_text())
    later = next(one for one in site.get("/runs") if one["run_id"] == site.task)
    assert told["latest_step"] - 100 <= shown <= later["latest_step"] + 100
    expect(page.locator("article[data-metric=loss] canvas")).to_be_visible()
    for key, value in site.status()["config"].items():
        expect(row(page, "Config of the runs on show", key)).to_contain_text(str(value))


def test_metric_cards_and_the_points_behind_them(page: Page, site: Site) -> None:
    site.open(page, "/ui/metrics")
    card = page.locator("article[data-metric=loss]")
    expect(card.get_by_test_id("latest")).to_have_text(re.compile(r"\d"))
    shown = number(card.get_by_test_id("latest").inner_text())
    held = page.evaluate("run => window.__strata.series(run, 'loss')", site.task)
    newest = held["steps"][-1]
    truth = site.series("loss", from_step=max(0, newest - 900), to_step=newest + 900)
    by_step = dict(zip(truth["steps"], truth["values"], strict=True))
    assert any(abs(value - shown) <= 6e-4 * abs(value) for value in by_step.values()), shown
    assert by_step[newest] == pytest.approx(held["values"][-1])
    assert held["total"] == pytest.approx(site.series("loss")["total_points"], abs=400)
    names = {one["metric"] for one in site.get(f"/metrics/{site.task}?points=2")["series"]}
    training = {name for name in names if not name.startswith(("sys.", "progress/", "checkpoint"))}
    expect(page.locator("article[data-metric]")).to_have_count(len(training))


def test_metric_tabs(page: Page, site: Site) -> None:
    site.open(page, "/ui/metrics")
    page.get_by_role("tab", name="System").click()
    names = {one["metric"] for one in site.get(f"/metrics/{site.task}?points=2")["series"]}
    for name in sorted(name for name in names if name.startswith("sys.")):
        expect(page.locator(f"article[data-metric='{name}']")).to_be_visible()
    page.get_by_role("tab", name="Model").click()
    expect(page.get_by_text("No model metrics yet")).to_be_visible()
    page.get_by_role("tab", name="Checkpoints").click()
    table = page.get_by_role("region", name="Checkpoints of the runs on show")
    site.agree("newest checkpoint", table, lambda: f"{(site.newest_checkpoint() or {})['step']:,}")
    page.get_by_role("tab", name="Progress").click()
    expect(page.get_by_role("progressbar").first).to_be_visible()


def test_workers(page: Page, site: Site) -> None:
    site.open(page, "/ui/cluster")
    for worker in site.workers():
        line = row(page, "Workers", worker["id"])
        expect(line).to_contain_text(re.compile("active|checkpointing"))
        cells = line.get_by_role("cell")
        assert number(cells.nth(0).inner_text()) == worker["rank"]
        assert number(cells.nth(-2).inner_text()) == worker["assigned_shards"]
        site.agree_on_step(cells.nth(-3))
        assert ":0" not in cells.nth(3).inner_text(), "a port that nobody listens on"


def test_worker(page: Page, site: Site) -> None:
    worker = site.workers()[1]
    site.open(page, f"/ui/cluster/{worker['id']}")
    facts = page.locator("main dl").first
    expect(facts).to_contain_text("active")
    expect(facts.locator("dt:text-is('Heartbeat') + dd")).to_have_text(re.compile(r"now|[1-5] s ago"))
    expect(facts.locator("dt:text-is('Rank') + dd")).to_have_text(str(worker["rank"]))
    expect(facts.locator("dt:text-is('Shards') + dd")).to_have_text(str(worker["assigned_shards"]))
    expect(facts.locator("dt:text-is('Task') + dd")).to_have_text(site.task)
    memory = page.locator("main dl").nth(1).locator("dt:text-is('Memory') + dd")
    eventually(
        "memory",
        lambda: abs(number(memory.inner_text()) * 1e6 / site.workers()[1]["resources"]["memory_used_bytes"] - 1) < 0.05,
    )


def test_shards_barriers_and_heatmap(page: Page, site: Site) -> None:
    site.open(page, "/ui/cluster?view=shards")
    shards = site.get("/api/datasets/spirals/shards")
    shards = shards["shards"] if isinstance(shards, dict) else shards
    panel = page.get_by_role("tabpanel")
    for worker in site.workers():
        own = sum(any(one["worker_id"] == worker["id"] for one in shard["readers"]) for shard in shards)
        line = panel.get_by_role("listitem").filter(has=page.locator(f"a[href*='{worker['id']}']"))
        expect(line).to_contain_text(f"{own} shards")
    page.get_by_role("tab", name="Barriers").click()
    table = page.get_by_role("region", name="Barriers")
    site.agree(
        "newest barrier", table, lambda: next(b for b in site.get("/api/barriers") if b["status"] == "complete")["name"]
    )
    page.get_by_role("tab", name="Rank heatmap").click()
    for rank in range(4):
        expect(panel.get_by_role("link", name=f"rank {rank}", exact=True)).to_be_visible()


def test_data(page: Page, site: Site) -> None:
    site.open(page, "/ui/data")
    (told,) = site.get("/api/datasets")
    line = row(page, "Datasets", told["name"])
    expect(line).to_contain_text(f"{told['total_samples']:,}")
    expect(line).to_contain_text(str(told["shard_count"]))
    expect(line).to_contain_text(f"seed {told['seed']}")
    samples = page.get_by_role("region", name="Samples")
    for column in ("x", "y", "radius", "label"):
        expect(samples.get_by_role("columnheader", name=re.compile(f"^{column} "))).to_be_visible()
    first = samples.get_by_role("row").nth(1).get_by_role("cell")
    assert 0 <= number(first.nth(0).inner_text()) < told["total_samples"]
    x, y, radius = (number(first.nth(i).inner_text()) for i in (1, 2, 3))
    assert x**2 + y**2 == pytest.approx(radius**2, rel=0.01), "a real sample of the spirals"


def test_checkpoints(page: Page, site: Site) -> None:
    site.open(page, "/ui/checkpoints")
    newest = site.newest_checkpoint() or {}
    line = row(page, "Checkpoints", f"{newest['step']:,}")
    expect(line).to_contain_text("completed")
    expect(line).to_contain_text(newest["worker_id"])
    assert number(line.get_by_role("cell").nth(3).inner_text()) == pytest.approx(newest["size"] / 1e3, rel=0.01)


def test_tasks_and_task(page: Page, site: Site) -> None:
    site.open(page, "/ui/tasks")
    told = site.status()
    line = row(page, "Tasks", site.task)
    expect(line).to_contain_text(told["status"])
    expect(line).to_contain_text(told["dataset_id"])
    line.get_by_role("link", name=told["name"]).click()
    expect(page.get_by_role("heading", level=1, name=told["name"])).to_be_visible()
    for key, value in told["config"].items():
        expect(page.locator(f"dt:text-is('{key}') + dd")).to_have_text(str(value))
    expect(page.locator("main [data-status]")).to_have_count(len(told["worker_ids"]))


def test_logs(page: Page, site: Site) -> None:
    site.open(page, "/ui/logs")
    lines = page.get_by_role("log").locator("[data-log]")
    expect(lines.first).to_be_visible()
    newest = page.get_by_role("log").locator("[data-log]").last
    newest_id = newest.get_attribute("data-log")
    assert any(one["id"] == newest_id for one in site.get("/api/logs?limit=500"))
    page.get_by_label("Search log lines by regular expression").fill("joined as rank [0-9]+")
    expect(lines.last).to_contain_text("joined as rank")
    page.get_by_label("Search log lines by regular expression").fill("no line says this")
    expect(page.get_by_text("No line matches")).to_be_visible()


def test_alerts(page: Page, site: Site) -> None:
    site.open(page, "/ui/alerts")
    told = site.get("/api/alerts")
    told = told["alerts"] if isinstance(told, dict) else told
    if told:
        expect(page.locator("main li")).to_have_count(len(told))
        expect(page.locator("main li").first).to_contain_text(told[0]["message"])
    else:
        expect(page.get_by_text("Nothing to report")).to_be_visible()


def test_settings(page: Page, site: Site) -> None:
    site.open(page, "/ui/settings")
    told = site.get("/api/status")
    server = page.locator("main dl").first
    expect(server).to_contain_text(told["address"])
    expect(server).to_contain_text(told["version"])
    expect(server.locator("dt:text-is('Metric store') + dd")).to_have_text(told["metric_store"])
    assert site.get("/api/dashboard")["coordinator"]["started_at_ms"] == told["started_at_ms"] is not None
