"""Addresses, keys, phone width and demo mode."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site

pytestmark = pytest.mark.browser


def test_deep_link_restores_the_view(page: Page, site: Site) -> None:
    site.open(page, f"/ui/metrics?t=6h&x=rel&log=1&sm=0.6&ranks=all&q=loss&runs={site.task}")
    expect(page.get_by_role("button", name="Relative")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Log y")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Each rank")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="6h")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("slider")).to_have_value("0.6")
    expect(page.locator("article[data-metric]")).to_have_count(1)
    page.get_by_role("button", name="Wall").click()
    expect(page).to_have_url(re.compile("x=wall"))
    page.reload()
    expect(page.get_by_role("button", name="Wall")).to_have_attribute("aria-pressed", "true")


def test_full_view_by_address_and_as_a_table(page: Page, site: Site) -> None:
    site.open(page, "/ui/metrics?m=loss")
    dialog = page.get_by_role("dialog", name="loss")
    expect(dialog.locator("canvas")).to_be_visible()
    dialog.get_by_role("button", name="View as table").click()
    expect(dialog.get_by_role("row").nth(5)).to_contain_text(re.compile(r"step [\d,]+"))
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page).not_to_have_url(re.compile("m=loss"))


def test_keys(page: Page, site: Site) -> None:
    site.open(page, "/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_contain_text("Everywhere")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page.get_by_role("heading", level=1, name="Metrics")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("throughput")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="throughput/samples_per_sec")).to_be_visible()


def test_phone_menu(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    site.open(page, "/")
    page.get_by_role("button", name="Menu", exact=True).click()
    page.get_by_role("link", name="Logs", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Logs")).to_be_visible()


def test_demo_mode_needs_no_server(page: Page, static_site: str) -> None:
    page.goto(f"{static_site}/?demo=1")
    expect(page.get_by_test_id("connection")).to_have_text("Recorded")
    expect(page.get_by_role("status").filter(has_text="recorded and played back")).to_be_visible()
    expect(page.locator("main [data-status]").first).to_be_visible()
    before = page.evaluate("window.__strata.counters().received")
    page.wait_for_function("before => window.__strata.counters().received > before", arg=before)
    for name in (
        "Runs",
        "Metrics",
        "Dashboards",
        "Cluster",
        "Data",
        "Checkpoints",
        "Tasks",
        "Logs",
        "Alerts",
        "Settings",
    ):
        page.get_by_role("link", name=re.compile(f"^{name}")).first.click()
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
        expect(page.get_by_label("Loading")).to_have_count(0)
        expect(page.get_by_text("A recording cannot do this")).to_have_count(0)
    expect(page).to_have_url(re.compile("demo=1"))


def test_no_server_and_no_demo_says_so(page: Page, static_site: str, console_errors: list[str]) -> None:
    page.goto(static_site)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "disconnected")
    expect(page.get_by_role("button", name="Look at the demo")).to_be_visible()
    console_errors.clear()  # the browser reports each request that a file server cannot answer
