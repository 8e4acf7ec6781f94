"""What breaks is seen, in words, and heals without a lost point."""

import os
import re
import signal

import pytest
from playwright.sync_api import Page, Route, expect

from strata.observatory.http.static import WEB_DIR
from tests.browser.site import Site
from tests.support.waiting import eventually

pytestmark = pytest.mark.browser

HELD = "run => window.__strata.series(run, 'loss')"
# Points less steps: the same within an attempt, unless a point is lost or doubled. Two looks with new points between
# them agree on it; one look may fall between an answer, whose last point stands for several, and the next live one.
EXCESS = """([run, beyond, wanted]) => {
  const held = window.__strata.series(run, 'loss');
  if (!held) return null;
  const before = window.__seen;
  const now = { step: held.steps.at(-1), excess: held.total - held.steps.at(-1) };
  if (now.step !== before?.step) window.__seen = now;
  const agree = before && now.step > before.step && now.excess === before.excess;
  return agree && now.step > beyond && (wanted === null || now.excess === wanted) ? now : null;
}"""


def another_build(route: Route) -> None:
    """What a server answers that was updated while it was away."""
    index = (WEB_DIR / "index.html").read_text(encoding="utf-8")
    route.fulfill(body=index.replace("/assets/index-", "/assets/another-"), content_type="text/html")


def test_a_killed_worker_is_seen_and_comes_back(page: Page, site: Site) -> None:
    """About 10 s: the whole gang is started anew from its last checkpoint."""
    attempt = site.status()["attempt"]
    site.open(page, "/")
    expect(page.locator("main [data-status=active], main [data-status=checkpointing]")).to_have_count(4)
    victim = site.active()[2]["id"]
    os.kill(site.pid_of(victim), signal.SIGKILL)
    expect(page.locator("main [data-status=recovering], main [data-status=failed]").first).to_be_visible()
    event = page.locator("section", has=page.get_by_role("heading", name="Newest events")).get_by_text(
        f"worker {victim} is lost"
    )
    expect(event.first).to_be_visible()
    expect(page.get_by_text(re.compile(f"attempt {attempt + 1}, resumes from step")).first).to_be_visible()
    expect(page.locator("main [data-status=active], main [data-status=checkpointing]")).to_have_count(4)
    assert site.status()["attempt"] == attempt + 1
    eventually("training again", lambda: len(site.active()) == 4, within_s=60)

    page.get_by_role("link", name=re.compile("^Alerts")).click()
    page.get_by_role("button", name=re.compile(f"worker {victim} is lost")).first.click()
    trail = page.get_by_role("dialog")
    expect(trail.get_by_role("region", name="Values per rank")).to_be_visible()
    expect(trail).to_contain_text("Last good checkpoint")
    expect(trail).to_contain_text("was killed by signal 9")
    expect(trail.get_by_role("region", name="Values per rank").get_by_role("row")).to_have_count(5)
    expect(trail).to_contain_text(re.compile(r"Step [\d,]+(, [\d,]+ steps earlier)? · "))
    expect(trail).to_contain_text(re.compile(r"rank 0 \d+ · rank 1 \d+"))


def test_one_cause_is_told_once(page: Page, site: Site) -> None:
    """A killed worker takes its gang down: that is one event, not one per rank."""
    told = site.get("/api/alerts")
    told = told["alerts"] if isinstance(told, dict) else told
    lost = [one["message"] for one in told if one["kind"] == "worker_lost"]
    assert len(lost) == len(set(lost)) <= site.status()["attempt"] - 1
    site.open(page, "/ui/alerts")
    expect(page.locator("main li").filter(has_text="worker lost")).to_have_count(len(lost))


def test_observatory_killed_no_point_is_lost(page: Page, site: Site, console_errors: list[str]) -> None:
    """About 10 s: the supervisor starts it again, the page reconnects, workers hand over what they kept meanwhile."""
    site.open(page, "/ui/metrics?q=^loss$")
    expect(page.locator("article[data-metric=loss] canvas")).to_be_visible()
    pid = site.cluster.pid_of("observatory")
    assert pid is not None
    before = page.wait_for_function(EXCESS, arg=[site.task, 0, None]).json_value()
    attempts = site.course()["attempts"]
    page.route(f"{site.url}/", another_build)
    os.kill(pid, signal.SIGKILL)
    pill = page.get_by_test_id("connection")
    expect(pill).to_have_attribute("data-state", "disconnected")
    expect(pill).to_contain_text("Disconnected")
    expect(page.locator("main [data-stale]")).to_have_css("opacity", "0.6")
    expect(page.get_by_role("status").filter(has_text="Training is not affected")).to_be_visible()

    expect(pill).to_have_attribute("data-state", "live")
    expect(page.locator("main [data-stale]")).to_have_count(0)
    banner = page.get_by_role("status").filter(has_text="The server has a newer version of this page")
    expect(banner.get_by_role("button", name="Reload")).to_be_visible()
    # Every step counts once: none is lost, none is there twice.
    beyond = [site.task, before["step"] + 50, before["excess"]]
    after = page.wait_for_function(EXCESS, arg=beyond).json_value()
    held = page.evaluate(HELD, site.task)
    truth = site.series("loss", from_step=before["step"], to_step=after["step"])
    assert truth["steps"] == list(range(before["step"], after["step"] + 1)), "the server itself has every step"
    # A chart asks for as many points as it has room for, lows and highs of longer stretches: each was logged.
    long = site.series("loss", from_step=max(0, after["step"] - 1500), to_step=after["step"])
    told = dict(zip(long["steps"], long["values"], strict=True))
    both = {step: value for step, value in zip(held["steps"], held["values"], strict=True) if step in told}
    assert len(both) >= 10
    assert list(both.values()) == pytest.approx([told[step] for step in both])
    eventually("the attempts, from the store", lambda: len(site.course()["attempts"]) == len(attempts), within_s=30)
    assert [one["started_at_ms"] for one in site.course()["attempts"]] == [one["started_at_ms"] for one in attempts]
    console_errors.clear()  # the browser reports every connection that was refused meanwhile


def test_the_tasks_page_says_where_the_time_went(page: Page, site: Site) -> None:
    """After the kills above; the attempts outlived the observatory that saw them."""
    course = site.course()
    killed = next(one for one in course["attempts"] if "signal 9" in (one["reason"] or ""))
    site.open(page, f"/ui/tasks/{site.task}")
    lanes = page.get_by_role("list", name="Attempts").get_by_role("listitem")
    expect(lanes).to_have_count(len(course["attempts"]))
    expect(lanes.nth(killed["attempt"] - 1)).to_contain_text("was killed by signal 9")
    expect(lanes.nth(killed["attempt"] - 1)).to_contain_text("done again")
    expect(page.get_by_role("img", name=re.compile("Training .*Recovering"))).to_be_visible()
    parts = [value for name, value in course["shares"].items() if name != "wall_s"]
    assert sum(value or 0.0 for value in parts) == pytest.approx(course["shares"]["wall_s"])
