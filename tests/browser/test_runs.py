"""Many runs: found by what they are, shown by what is chosen, changed together."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site, finished_run, row
from tests.support.cluster import Cluster
from tests.support.local_http import LOCAL

pytestmark = pytest.mark.browser

RUNS = {"wide": (0.1, 4.0), "narrow": (0.01, 2.0), "flat": (0.001, 1.0)}
"""Each with its learning rate and its first loss."""


@pytest.fixture(scope="module")
def sweep(cluster: Cluster, task: str) -> Iterator[Site]:
    site = Site(cluster, task)
    for name, (lr, first) in RUNS.items():
        finished_run(site, name, {"lr": lr}, tags=("sweep",), group=f"lr-{lr}", first=first)
    yield site
    for name in RUNS:
        LOCAL.delete(f"{site.url}/api/runs/{name}")  # later tests know one run only


def expect_listed(page: Page, *names: str) -> None:
    table = page.get_by_role("region", name="Runs", exact=True)
    expect(table.get_by_role("row")).to_have_count(1 + len(names))
    for place, name in enumerate(names, 1):
        expect(table.get_by_role("row").nth(place).get_by_role("link", name=name)).to_be_visible()


def test_runs_are_filtered_sorted_and_shown_with_chosen_columns(
    page: Page, sweep: Site, console_errors: list[str]
) -> None:
    sweep.open(page, "/ui/runs")
    box = page.get_by_role("searchbox", name="Filter runs")
    box.fill("tag:sweep and lr > 5e-3")
    page.get_by_role("button", name="Run", exact=True).click()
    expect_listed(page, "narrow", "wide")
    expect(page.get_by_text("2 found")).to_be_visible()

    page.get_by_role("button", name="Choose columns").click()
    page.get_by_role("textbox", name="Search columns").fill("lr")
    page.get_by_role("checkbox", name="config.lr").check()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="lr", exact=True).click()
    expect_listed(page, "wide", "narrow")
    expect(row(page, "Runs", "wide")).to_contain_text("0.1")
    page.get_by_role("button", name="loss, min", exact=True).click()
    expect_listed(page, "wide", "narrow")
    page.get_by_role("button", name="loss, min", exact=True).click()
    expect_listed(page, "narrow", "wide")

    expect(page).to_have_url(re.compile(r"sort=loss\.min"))  # it follows when the clicks rest
    page.reload()  # the address holds filter, order and columns
    expect_listed(page, "narrow", "wide")
    expect(page.get_by_role("button", name="lr", exact=True)).to_be_visible()

    box.fill("lr >")
    expect(page.get_by_role("alert")).to_contain_text(re.compile("lr >"))
    expect_listed(page, "narrow", "wide")
    assert all("/api/runs/table" in line for line in console_errors), "the browser reports the refused request"
    console_errors.clear()
    box.fill("")
    row(page, "Runs", "flat").get_by_role("button", name="sweep").click()
    expect(box).to_have_value("tag:sweep")
    expect(page.get_by_text("3 found")).to_be_visible()


def test_selected_runs_are_tagged_archived_restored_and_deleted(page: Page, sweep: Site) -> None:
    sweep.open(page, "/ui/runs?q=tag%3Asweep&sort=name")
    for name in ("flat", "narrow"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    bar = page.get_by_role("region", name="Selected runs")
    expect(bar).to_contain_text("2 runs selected")
    bar.get_by_role("textbox", name="Tag for the selected runs").fill("paper")
    bar.get_by_role("button", name="Add tag").click()
    expect(row(page, "Runs", "flat")).to_contain_text("paper")
    tagged = {one["run_id"] for one in sweep.get("/api/runs?filter=tag:paper")}
    assert tagged == {"flat", "narrow"}

    bar.get_by_role("button", name="Archive").click()
    expect_listed(page, "wide")
    box = page.get_by_role("searchbox", name="Filter runs")
    box.fill("archived:yes")
    expect_listed(page, "flat", "narrow")
    page.get_by_role("checkbox", name="Select flat").check()
    bar.get_by_role("button", name="Restore").click()
    expect_listed(page, "narrow")

    page.get_by_role("checkbox", name="Select narrow").check()
    bar.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete 1 run?").get_by_role("button", name="Delete 1 run").click()
    expect(page.get_by_text("No run is like that")).to_be_visible()
    assert {one["run_id"] for one in sweep.get("/api/runs?filter=tag:sweep")} == {"flat", "wide"}
