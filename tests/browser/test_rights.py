"""Every page as its owner and as a viewer: what the server would refuse is offered to nobody."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.site import Site
from tests.browser.test_alert_rules import SIGN_IN
from tests.browser.test_tour import PAGES
from tests.support.cluster import strata
from tests.support.local_http import LOCAL
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]


class Acts(NamedTuple):
    """Of one page: text that is there once it has its data, what to click then, and the buttons that act."""

    landmark: str
    buttons: tuple[str, ...]
    click: str = ""


ACTS = {
    "/ui/tasks": Acts("spirals-mlp", ("New task", "Stop spirals-mlp", "Resume too-large")),
    "/ui/tasks/{task}": Acts("Newest log lines", ("Stop", "Fork")),
    "/ui/tasks/{ended}": Acts("Newest log lines", ("Resume",)),
    "/ui/runs": Acts("spirals-mlp", ("Rename {task}", "Notes on {task}", "Delete {task}")),
    "/ui/runs/{task}": Acts("All metrics", ("Rename {task}", "Tags and notes", "Archive", "Delete")),
    "/ui/checkpoints": Acts("History", ("Keep step", "Fork from step")),
    "/ui/data": Acts("Preview", ("Register dataset",)),
    "/ui/dashboards": Acts("made from the metrics", ("Save", "Save as…", "Import JSON…"), click="More"),
    "/ui/dashboards/kept": Acts("A board", ("Save", "Save as…", "Delete…"), click="More"),
    "/ui/alerts": Acts("high: loss is", ("Fork from here",), click="high: loss is"),
    "/ui/alerts/rules": Acts(
        "hook",
        ("New rule", "New target", "Test rule high", "Edit rule high", "Delete rule high", "Edit target hook"),
    ),
}
ACTING = re.compile(
    "^(New |Stop|Resume|Fork|Rename|Notes on|Tags and|Archive|Restore|Delete|Save$|Save as|Import|Register|Keep"
    "|Add tag|Test)"
)
NAMES = (
    """() => [...document.querySelectorAll("button")].map((one) => one.getAttribute("aria-label") ?? one.innerText)"""
)


@pytest.fixture
def kept(site: Site) -> Iterator[dict[str, str]]:
    """One of everything that can be acted on; gives what the addresses are filled with."""
    url, layout = site.url, {"sections": [{"title": "All", "panels": []}]}
    put = {
        "dashboards/kept": {"name": "A board", "project": "p", "layout": layout},
        "alerts/targets/hook": {"kind": "webhook", "url": "http://127.0.0.1:9/x"},
        "alerts/rules/high": {"kind": "threshold", "metric": "loss", "value": -1, "targets": ["hook"]},
    }
    for path, body in put.items():
        LOCAL.put(f"{url}/api/{path}", json=body).raise_for_status()
    ended = site.post("/api/tasks", {"name": "too-large", "dataset_id": "spirals", "worker_count": 500})["task_id"]
    site.post(f"/api/tasks/{ended}/stop", {})
    eventually("its end", lambda: site.get(f"/api/tasks/{ended}")["status"] == "stopped", within_s=60)
    eventually("the rule's alert", lambda: _fired(site), within_s=60)
    yield {"task": site.task, "ended": ended, "worker": site.workers()[0]["id"]}
    for path in reversed(put):
        LOCAL.delete(f"{url}/api/{path}", headers={"If-Match": "*"}).raise_for_status()


def _fired(site: Site) -> list[dict[str, Any]]:
    return [alert for alert in site.get("/api/alerts") if alert["kind"] == "rule_threshold"]


def _open(page: Page, site: Site, path: str, acts: Acts) -> None:
    """Waits until the page has its data, and for what it opens."""
    site.open(page, path)
    expect(page.locator("main").get_by_text(acts.landmark).first).to_be_visible()
    if acts.click:
        page.locator("main").get_by_role("button", name=acts.click).first.click()
        expect(page.get_by_role("button", name=re.compile("^(Export JSON|Copy as Markdown)$"))).to_be_visible()


def test_the_owner_finds_every_act(page: Page, site: Site, kept: dict[str, str]) -> None:
    for path, acts in ACTS.items():
        _open(page, site, path.format(**kept), acts)
        for name in acts.buttons:
            assert ACTING.match(name) or name.startswith("Edit"), name
            exact = re.compile(f"^{re.escape(name.format(**kept))}( [\\d,]+)?$")
            expect(page.get_by_role("button", name=exact).first).to_be_visible()
    site.open(page, "/ui/runs")
    page.get_by_role("checkbox", name=f"Select {site.task}").check()
    expect(page.get_by_role("region", name="Selected runs").get_by_role("button", name="Archive")).to_be_visible()


def test_a_viewer_finds_none_and_asks_for_nothing_that_is_refused(
    browser: Browser, site: Site, kept: dict[str, str]
) -> None:
    made = strata("token", "create", "--role", "viewer", "--data-dir", str(site.cluster.folder))
    found = re.search(r"(?:STRATA_JOIN=)?(\S+)@\S+:\d+", made.stdout)
    assert found, made.stdout + made.stderr
    refused: list[str] = []
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.on("response", lambda answer: refused.append(answer.url) if answer.status in (401, 403) else None)
        page.goto(site.url)
        eventually("the observatory to know the token", lambda: page.evaluate(SIGN_IN, found[1]))
        refused.clear()  # tries before it knew the token
        site.open(page, "/ui/settings")
        expect(page.locator("dt:text-is('To the server it is') + dd")).to_have_text("viewer")
        for path, acts in ACTS.items():
            _open(page, site, path.format(**kept), acts)
            _look(page, path, [name.format(**kept) for name in acts.buttons])
        expect(page.get_by_text("You may see rules and targets. An operator may change them.")).to_be_visible()
        for path in PAGES:
            site.open(page, path.format(**kept))
            expect(page.get_by_label("Loading")).to_have_count(0)
            _look(page, path)
        site.open(page, "/ui/runs")
        expect(page.get_by_role("checkbox", name=f"Show {site.task} in charts")).to_have_count(1)
        expect(page.get_by_role("checkbox", name=f"Select {site.task}")).to_have_count(0)
        site.open(page, "/ui/data")
        expect(page.get_by_text("Samples are for operators")).to_be_visible()
        assert refused == []
        status = page.evaluate("fetch('/api/runs', { method: 'PATCH' }).then((answer) => answer.status)")
        assert status == 403, "the server decides, not the page"


def _look(page: Page, path: str, buttons: Sequence[str] = ()) -> None:
    """No button acts. What a page opens has been waited for, so what is missing will not come."""
    for name in buttons:
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    assert [name for name in page.evaluate(NAMES) if ACTING.match(name.strip())] == [], path
