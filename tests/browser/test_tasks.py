"""A task from the form to its end: complaints first, then a real one that is stopped."""

import os
import signal

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
    form.get_by_label("Config").fill('{"epochs": 10000, "batch_size": 64, "grace_s": 30, "checkpoint_every": 10}')
    form.get_by_role("button", name="Start task").click()
    expect(form).to_be_hidden()
    expect(page.get_by_role("heading", level=1, name="from-the-form")).to_be_visible()
    task = page.url.rsplit("/", 1)[-1].split("?")[0]
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("running")
    eventually("two workers", lambda: len(site.get(f"/api/tasks/{task}")["worker_ids"]) == 2)
    told = site.get(f"/api/tasks/{task}")
    assert (told["status"], told["config"]["epochs"]) == ("running", 10000)

    eventually("a checkpoint", Site(site.cluster, task).newest_checkpoint, within_s=60)
    page.get_by_role("button", name="Stop", exact=True).click()
    confirm = page.get_by_role("dialog")
    confirm.get_by_role("button", name="Cancel").click()
    assert site.get(f"/api/tasks/{task}")["status"] == "running", "Cancel must not stop it"
    page.get_by_role("button", name="Stop", exact=True).click()
    confirm.get_by_role("button", name="Stop").click()
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("stopped")
    eventually("the end", lambda: site.get(f"/api/tasks/{task}")["status"] == "stopped")

    newest = Site(site.cluster, task).newest_checkpoint()
    assert newest is not None
    saved = newest["step"]
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(confirm).to_contain_text(f"It goes on from step {saved:,}, as attempt 2 of the same run.")
    confirm.get_by_role("button", name="Resume task").click()
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("running")
    expect(page.locator("dt:text-is('Attempt') + dd")).to_have_text("2")
    expect(page.locator("dt:text-is('Reason') + dd")).to_have_text(f"attempt 2, resumes from step {saved}")
    expect(page.locator("dt:text-is('Own failures') + dd")).to_have_text("0 of 3 restarts used")
    site.post(f"/api/tasks/{task}/stop?now=true", {})
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("stopped")


@pytest.mark.slow
def test_a_task_shows_how_much_of_its_budgets_is_used(page: Page, site: Site) -> None:
    """A training that is killed from outside goes on, and says what that cost; then it is stopped."""
    body = {"name": "kill-me", "dataset_id": site.get("/api/datasets")[0]["id"], "config": {"epochs": 10000}}
    task = site.post("/api/tasks", {**body, "max_restarts": 5})["task_id"]
    site.open(page, f"/ui/tasks/{task}")
    losses = page.locator("dt:text-is('Losses') + dd")
    expect(losses).to_have_text("none; 20 allowed within 6 h without a new checkpoint")
    worker = eventually("its worker", Site(site.cluster, task).active, within_s=60)[0]
    os.kill(site.pid_of(worker["id"]), signal.SIGKILL)
    expect(losses).to_contain_text("1 kill from outside or lost host in all; ")
    expect(page.locator("dt:text-is('Own failures') + dd")).to_have_text("0 of 5 restarts used")
    expect(page.get_by_role("list", name="Attempts")).to_contain_text("was killed by signal 9 (SIGKILL)")
    site.post(f"/api/tasks/{task}/stop?now=true", {})
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("stopped")


def test_what_the_server_refuses_is_shown(page: Page, site: Site, console_errors: list[str]) -> None:
    site.open(page, "/ui/tasks")
    page.get_by_role("button", name="New task").click()
    form = page.get_by_role("dialog", name="New task")
    form.get_by_label("Name").fill("unknown-type")
    form.get_by_label("Type").fill("no-such-type")
    form.get_by_role("button", name="Start task").click()
    expect(form.get_by_role("alert")).to_contain_text("no-such-type")
    assert all("/api/tasks" in line for line in console_errors), "the browser itself reports the refused request"
    console_errors.clear()
