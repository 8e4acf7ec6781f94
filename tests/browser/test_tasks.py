"""A task from the form to its end: complaints first, then a real one that is stopped."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.support.waiting import eventually

pytestmark = pytest.mark.browser


def test_create_and_stop(page: Page, site: Site) -> None:
    """About 8 s: two worker processes start, train and stop."""
    site.open(page, "/ui/tasks")
    page.get_by_role("button", name="New task").click()
    form = page.get_by_role("dialog", name="New task")
    form.get_by_label("Workers").fill("two")
    form.get_by_label("Config").fill('{"learning_rate": ')
    form.get_by_role("button", name="Start task").click()
    expect(form.get_by_text("A task needs a name.")).to_be_visible()
    expect(form.get_by_text("A whole number, 1 or more.")).to_be_visible()
    expect(form.get_by_text("Not JSON")).to_be_visible()
    expect(form.get_by_label("Name")).to_have_attribute("aria-invalid", "true")

    form.get_by_label("Name").fill("from-the-form")
    form.get_by_label("Workers").fill("2")
    form.get_by_label("Config").fill('{"epochs": 10000, "batch_size": 64, "grace_s": 5}')
    form.get_by_role("button", name="Start task").click()
    expect(page.get_by_role("heading", level=1, name="from-the-form")).to_be_visible()
    task = page.url.rsplit("/", 1)[-1].split("?")[0]
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("running", timeout=30_000)
    told = site.get(f"/api/tasks/{task}")
    assert (told["status"], told["config"]["epochs"], len(told["worker_ids"])) == ("running", 10000, 2)

    page.get_by_role("button", name="Stop", exact=True).click()
    confirm = page.get_by_role("dialog")
    confirm.get_by_role("button", name="Cancel").click()
    assert site.get(f"/api/tasks/{task}")["status"] == "running", "Cancel must not stop it"
    page.get_by_role("button", name="Stop", exact=True).click()
    confirm.get_by_role("button", name="Stop").click()
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("stopped", timeout=30_000)
    eventually("the end", lambda: site.get(f"/api/tasks/{task}")["status"] == "stopped")


def test_what_the_server_refuses_is_shown(page: Page, site: Site, console_errors: list[str]) -> None:
    site.open(page, "/ui/tasks")
    page.get_by_role("button", name="New task").click()
    form = page.get_by_role("dialog", name="New task")
    form.get_by_label("Name").fill("unknown-type")
    form.get_by_label("Type").fill("no-such-type")
    expect(form.get_by_label("Dataset")).not_to_have_value("")  # the list has arrived
    form.get_by_role("button", name="Start task").click()
    expect(form.get_by_role("alert")).to_contain_text("no-such-type")
    assert all("/api/tasks" in line for line in console_errors), "the browser itself reports the refused request"
    console_errors.clear()
