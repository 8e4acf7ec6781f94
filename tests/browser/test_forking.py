"""A fork from the row of a checkpoint: from the click to a task that runs, and whose charts begin with its parent's."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_fork_from_a_checkpoint(page: Page, site: Site, console_errors: list[str]) -> None:
    """About 15 s: two ranks train and are stopped, and two more go on from their checkpoint."""
    config = {"epochs": 10_000, "batch_size": 64, "checkpoint_every": 10, "pause_s": 0.02}
    body = {"name": "to-be-forked", "dataset_id": "spirals", "worker_count": 2, "config": config}
    parent = site.cluster.post("/api/tasks", body)["task_id"]
    eventually("a checkpoint", Site(site.cluster, parent).newest_checkpoint, within_s=90)
    site.post(f"/api/tasks/{parent}/stop", {})
    eventually("its end", lambda: site.get(f"/api/tasks/{parent}")["status"] == "stopped", within_s=60)
    newest = Site(site.cluster, parent).newest_checkpoint()
    assert newest is not None

    site.open(page, f"/ui/tasks/{parent}")
    page.get_by_role("button", name="Fork", exact=True).click()
    form = page.get_by_role("dialog", name="Fork to-be-forked")
    form.get_by_label("Changed config").fill("learning_rate")
    form.get_by_label("Leave out the batches of steps").fill("20..10")
    form.get_by_role("button", name="Fork", exact=True).click()
    expect(form.get_by_text("one KEY=VALUE per line")).to_be_visible()
    expect(form.get_by_text("20..10 runs backwards.")).to_be_visible()
    form.get_by_label("Name").fill("calm")
    form.get_by_label("Changed config").fill("learning_rate=0.001")
    form.get_by_label("Leave out the batches of steps").fill("1..5")
    form.get_by_role("button", name="Fork", exact=True).click()
    expect(form.get_by_role("alert")).to_contain_text("no good checkpoint at or before step 0")
    console_errors.clear()  # the browser notes the refusal as one
    form.get_by_label("Leave out the batches of steps").fill("")
    form.get_by_role("button", name="Fork", exact=True).click()

    expect(page.get_by_role("heading", level=1, name="calm")).to_be_visible()
    child = page.url.rsplit("/", 1)[-1].split("?")[0]
    expect(page.locator("dt:text-is('Status') + dd")).to_have_text("running")
    expect(page.locator("dt:text-is('Forked from') + dd")).to_contain_text(f"at step {newest['step']:,}")
    told = site.get(f"/api/tasks/{child}")
    assert (told["config"]["learning_rate"], told["fork"]["step"]) == (0.001, newest["step"])
    eventually("its run", lambda: child in {run["run_id"] for run in site.get("/api/runs")}, within_s=60)
    eventually("points", lambda: _origins(site, child) == {None, parent}, within_s=60)
    steps = {one["origin"]: one["steps"] for one in _losses(site, child)}
    assert max(steps[parent]) <= newest["step"] < min(steps[None])

    with page.expect_request(lambda request: "inherited=true" in request.url):
        site.open(page, f"/ui/metrics?runs={child}")
    site.post(f"/api/tasks/{child}/stop?now=true", {})


def _losses(site: Site, run: str) -> list[dict[str, Any]]:
    return list(site.get(f"/api/metrics/{run}?metric=loss&inherited=true")["series"])


def _origins(site: Site, run: str) -> set[object]:
    return {one["origin"] for one in _losses(site, run)}
