"""What people keep and throw away: runs renamed, annotated and deleted, checkpoints kept by hand."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, TimeoutError, expect  # noqa: A004  # playwright's

from strata.checkpoint import CheckpointManager
from tests.browser.site import Site, finished_run, row
from tests.support.local_http import LOCAL
from tests.support.waiting import eventually

pytestmark = pytest.mark.browser

HELD = "run => window.__strata.series(run, 'loss')"


def told(site: Site, run_id: str) -> dict[str, object] | None:
    return next((one for one in site.get("/runs") if one["run_id"] == run_id), None)


@pytest.mark.slow
def test_a_run_is_renamed_annotated_compared_and_deleted(
    page: Page, site: Site, one_context: BrowserContext, console_errors: list[str]
) -> None:
    finished_run(site, "deep", {"depth": 4, "lr": 0.1})
    finished_run(site, "shallow", {"depth": 2, "lr": 0.1})
    other = one_context.new_page()
    site.open(other, "/ui/metrics?runs=deep,shallow&q=^loss$")
    other.wait_for_function(f"() => ({HELD})('deep') !== null")  # a function: CSP forbids eval in later polls
    site.open(page, "/ui/runs?runs=deep,shallow")

    diff = page.get_by_role("region", name="Config of the runs on show")
    expect(diff.get_by_role("row").filter(has_text="depth")).to_contain_text(re.compile("4.*2|2.*4"))
    expect(diff.get_by_role("row").filter(has_text="lr")).to_have_count(0)
    page.get_by_role("button", name="All keys").click()
    expect(diff.get_by_role("row").filter(has_text="lr")).to_have_count(1)

    page.get_by_role("button", name="Rename deep").click()
    field = page.get_by_role("textbox", name="New name of deep")
    field.fill("given up")
    field.press("Escape")
    expect(page.get_by_role("button", name="Rename deep")).to_be_visible()
    page.get_by_role("button", name="Rename deep").click()
    field.fill("Four layers")
    field.press("Enter")
    expect(row(page, "Runs", "Four layers")).to_be_visible()
    page.get_by_role("button", name="Notes on Four layers").click()
    page.get_by_role("dialog").get_by_label("Notes").fill("worse than shallow")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(row(page, "Runs", "Four layers")).to_contain_text("worse than shallow")
    kept = told(site, "deep")
    assert kept is not None
    assert (kept["name"], kept["notes"]) == ("Four layers", "worse than shallow")
    expect(other.get_by_text("Four layers").first).to_be_visible()

    page.get_by_role("button", name="Delete Four layers").click()
    confirm = page.get_by_role("dialog", name="Delete Four layers?")
    confirm.get_by_role("button", name="Cancel").click()
    assert told(site, "deep") is not None, "Cancel must not delete it"
    page.get_by_role("button", name="Delete Four layers").click()
    confirm.get_by_role("button", name="Delete run").click()
    expect(row(page, "Runs", "shallow")).to_be_visible()
    expect(page.get_by_role("link", name="Four layers")).to_have_count(0)
    assert told(site, "deep") is None
    other.wait_for_function(f"() => ({HELD})('deep') === null")
    assert other.evaluate(HELD, "shallow") is not None
    other.close()

    page.get_by_role("button", name=re.compile(f"^Delete .*{site.task}")).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete run").click()
    expect(page.get_by_role("alert")).to_contain_text("belongs to a task that is running")
    assert told(site, site.task) is not None
    assert all("/api/runs/" in line for line in console_errors), "the browser itself reports the refused request"
    console_errors.clear()
    assert LOCAL.delete(f"{site.url}/api/runs/shallow").status_code == 200  # later tests know one run only


def keep_the_newest(page: Page, site: Site) -> dict[str, Any] | None:
    """None when retention was quicker than the click."""
    newest = site.newest_checkpoint()
    assert newest is not None
    keep = page.get_by_role("button", name=f"Keep step {newest['step']}", exact=True)
    try:
        keep.click(timeout=5_000)
        expect(keep).to_have_attribute("aria-pressed", "true", timeout=5_000)
    except (AssertionError, TimeoutError):
        return None
    return newest


def completed(site: Site, root: str) -> set[int]:
    """Steps that are called so, of the one task that keeps its checkpoints there."""
    rows = [one for one in site.get("/api/checkpoints") if one["status"] == "completed"]
    return {one["step"] for one in rows if one["path"].rpartition("/")[0] == root}


def test_a_checkpoint_is_kept_by_hand_and_removed_ones_are_called_so(page: Page, site: Site) -> None:
    site.open(page, "/ui/checkpoints")
    newest = eventually("a checkpoint that is kept", lambda: keep_the_newest(page, site))
    step = newest["step"]
    keep = page.get_by_role("button", name=f"Keep step {step}", exact=True)
    expect(row(page, "Checkpoints", f"{step:,}")).to_contain_text(f"step-{step:012d}")
    root = newest["path"].rpartition("/")[0]
    with CheckpointManager(root) as store:
        assert step in [info.step for info in store.list() if info.pinned], "the store itself holds the pin"
    page.reload()
    expect(keep).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name=re.compile(r"^Show \d+ removed$")).click()
    removed = row(page, "Checkpoints", "removed")
    expect(removed.get_by_role("button", name=re.compile("^Keep step"))).to_have_count(0)
    assert step in completed(site, root)
    eventually(
        "only what is in the store is called completed",
        lambda: completed(site, root) == {info.step for info in CheckpointManager(root).list()},
    )
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "false")
