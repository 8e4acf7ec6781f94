"""Alert rules on the page: made in a form, tested against a web server of the test, fired by the points of a real
training, followed into the incident, changed and deleted before the eyes of a second browser; seen by a viewer.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.site import Site
from tests.browser.test_tour import AXE, CHECK, SIDEWAYS, TO_DARK
from tests.support.cluster import Cluster, strata
from tests.support.local_http import LOCAL
from tests.support.receivers import SECRET, Receiver
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

RULES = "/ui/alerts/rules"
ASK = "([path, method]) => fetch(path, { method }).then((answer) => answer.status)"
SIGN_IN = """(token) => fetch("/api/session", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
}).then((answer) => answer.ok)"""


@pytest.fixture(autouse=True)
def no_rules(request: pytest.FixtureRequest) -> Iterator[None]:
    """One test's rules are no other's, whatever became of it."""
    site = request.getfixturevalue("site") if "site" in request.fixturenames else None
    yield
    if site is not None:
        url = site.url
        for kind, found in LOCAL.get(f"{url}/api/alerts/rules").json().items():
            for one in found if isinstance(found, list) else ():
                LOCAL.delete(f"{url}/api/alerts/{kind}/{one['name']}").raise_for_status()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def rule(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem", name=f"Rule {name}", exact=True)


def target(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem", name=f"Target {name}", exact=True)


def make_target(page: Page, name: str, url: str) -> None:
    page.get_by_role("button", name="New target").click()
    dialog = page.get_by_role("dialog", name="New target")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_label("URL", exact=True).fill(url)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)


@pytest.mark.slow
def test_a_rule_is_made_tested_fires_is_followed_changed_and_deleted(
    page: Page, browser: Browser, site: Site, receiver: Receiver, console_errors: list[str]
) -> None:
    site.open(page, "/ui/alerts")
    page.get_by_role("tab", name="Rules").click()
    expect(page).to_have_url(re.compile(RULES))
    make_target(page, "hook", receiver.url("/ok"))
    make_target(page, "broken", receiver.url("/broken"))
    expect(target(page, "hook")).to_contain_text("http://127.0.0.1:")
    assert SECRET not in page.content(), "the rest of an address is a secret"
    page.get_by_role("button", name="Test target hook").click()
    expect(page.get_by_role("status", name="Test of target hook")).to_contain_text("hook took the test message at")
    (tested,) = receiver.told("/ok")
    assert "the owner on the dashboard" in tested["text"]
    page.get_by_role("button", name="Test target broken").click()
    expect(page.get_by_role("status", name="Test of target broken")).to_have_text(
        "The test message was not sent. Target broken answered 500."
    )

    page.get_by_role("button", name="New rule").click()
    dialog = page.get_by_role("dialog", name="New alert rule")
    dialog.get_by_label("Name", exact=True).fill("loss-is-high")
    dialog.get_by_label("Metric", exact=True).fill("loss")
    dialog.get_by_label("Value", exact=True).fill("much")
    dialog.get_by_label("Runs", exact=True).fill("id >")
    dialog.get_by_role("checkbox", name="hook").check()
    dialog.get_by_role("checkbox", name="broken").check()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Value", exact=True)).to_have_accessible_description("A number, such as 4 or 1e-3.")
    dialog.get_by_label("Value", exact=True).fill("-1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Runs", exact=True)).to_have_accessible_description(re.compile("cannot be read"))
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("loss-is-high")
    expect(dialog.get_by_role("checkbox", name="broken")).to_be_checked()
    dialog.get_by_label("Runs", exact=True).fill(f"id:{site.task}")
    expect(dialog.get_by_label("Runs", exact=True)).to_have_accessible_description(re.compile("It finds 1 of"))
    dialog.get_by_role("button", name="Save").click()

    row = rule(page, "loss-is-high")
    expect(row).to_contain_text(f"loss is above −1, of runs that match id:{site.task}")
    expect(row).to_contain_text("firing")
    expect(row).to_contain_text("hook: sent")
    expect(row).to_contain_text("broken: not sent")
    expect(row).to_contain_text("target broken answered 500")
    told = [body["alert"] for body in receiver.told("/ok") if body["alert"]["kind"] == "rule_threshold"]
    assert [alert["task_id"] for alert in told] == [site.task]
    row.get_by_role("button", name=re.compile("^Last fired")).click()
    incident = page.get_by_test_id("incident")
    expect(incident).to_contain_text(told[0]["message"])
    expect(incident.get_by_test_id("verdict")).to_contain_text(re.compile(r"\w{3}"))
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Events").click()
    expect(page.locator("main li").filter(has_text="loss-is-high: loss is").first).to_be_visible()
    page.get_by_role("tab", name="Rules").click()

    with browser.new_context() as second:
        other = second.new_page()
        site.open(other, RULES)
        expect(rule(other, "loss-is-high")).to_contain_text("firing")
        other.get_by_role("button", name="Edit rule loss-is-high").click()
        edit = other.get_by_role("dialog", name="Rule loss-is-high")
        expect(edit.get_by_label("Value", exact=True)).to_have_value("-1")
        edit.get_by_label("Value", exact=True).fill("1e9")
        edit.get_by_role("button", name="Save").click()
        expect(row).to_contain_text("loss is above 1e9")
        expect(row).to_contain_text("quiet")
        other.get_by_role("button", name="Edit target hook").click()
        change = other.get_by_role("dialog", name="Target hook")
        expect(change.get_by_label("URL", exact=True)).to_have_value("")
        change.get_by_label("Quiet from").fill("22:00")
        change.get_by_role("button", name="Save").click()
        expect(change.get_by_label("Quiet to")).to_have_accessible_description(re.compile("need both"))
        change.get_by_label("Quiet to").fill("07:00")
        change.get_by_role("button", name="Save").click()
        expect(target(page, "hook")).to_contain_text("Quiet from 22:00 to 07:00")
        other.get_by_role("button", name="Test rule loss-is-high").click()
        result = other.get_by_role("status", name="Test of rule loss-is-high")
        expect(result).to_contain_text("hook took the test message")  # at the address that was left out
        expect(result).to_contain_text("Target broken answered 500.")

    for what in ("rule loss-is-high", "target hook", "target broken"):
        page.get_by_role("button", name=f"Delete {what}").click()
        page.get_by_role("dialog", name=f"Delete {what}?").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No rule of your own yet")).to_be_visible()
    expect(page.get_by_text("Nobody is told yet")).to_be_visible()
    assert all("503" in line or "400" in line for line in console_errors), "the browser reports what was refused"
    console_errors.clear()


FORMS = {
    "Threshold": ("Metric", "Is", "Value", "For at least (s)"),
    "NaN": ("Metric",),
    "Divergence": ("Metric", "Is", "Baseline run", "Value", "By more than (%)", "For at least (s)"),
    "No progress": ("A run may be silent for (s)",),
    "Checkpoint age": ("A checkpoint may be old (s)",),
}


@pytest.mark.slow
def test_every_kind_is_asked_for_what_it_needs_and_nothing_typed_is_lost(
    page: Page, site: Site, console_errors: list[str]
) -> None:
    site.open(page, RULES)
    page.get_by_role("button", name="New rule").click()
    dialog = page.get_by_role("dialog", name="New alert rule")
    dialog.get_by_label("Metric", exact=True).fill("kept")
    every = {label for labels in FORMS.values() for label in labels}
    for kind, labels in FORMS.items():
        value = dialog.get_by_label("Kind", exact=True).locator("option").filter(has_text=kind).get_attribute("value")
        dialog.get_by_label("Kind", exact=True).select_option(value)
        for label in every:
            expect(dialog.get_by_label(label, exact=True)).to_have_count(1 if label in labels else 0)
    dialog.get_by_label("Kind", exact=True).select_option("divergence")
    expect(dialog.get_by_label("Metric", exact=True)).to_have_value("kept")
    dialog.get_by_label("Name", exact=True).fill("far off")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_accessible_description(re.compile("is not a valid name"))
    dialog.get_by_label("Name", exact=True).fill("far-off")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Value", exact=True)).to_have_accessible_description(
        re.compile("or a baseline must be named")
    )
    dialog.get_by_label("Baseline run").fill(site.task)
    dialog.get_by_role("button", name="Save").click()
    expect(rule(page, "far-off")).to_contain_text(f"kept is more than 10 % above run {site.task} at the same step")
    page.get_by_role("button", name="New rule").click()
    dialog.get_by_label("Name", exact=True).fill("far-off")
    dialog.get_by_label("Kind", exact=True).select_option("bad_value")
    dialog.get_by_label("Metric", exact=True).fill("loss")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_accessible_description(
        re.compile("A rule of this name exists")
    )
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete rule far-off").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(rule(page, "far-off")).to_have_count(0)
    assert all("400" in line or "409" in line for line in console_errors), "the browser reports what was refused"
    console_errors.clear()


@pytest.mark.slow
def test_axe_finds_nothing_in_list_and_forms_and_a_phone_needs_no_sideways_scrolling(
    page: Page, site: Site, receiver: Receiver, console_errors: list[str]
) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": 1440, "height": 900})
    site.open(page, RULES)
    expect(page.get_by_text("No rule of your own yet")).to_be_visible()
    _look(page, "empty")
    make_target(page, "hook", receiver.url("/ok"))
    make_target(page, "broken", receiver.url("/broken"))
    words = {"metric": "loss", "filter": f"id:{site.task}", "targets": ["hook", "broken"]}
    for name, body in (
        ("much-loss", {"kind": "threshold", "value": -1, "severity": "critical", **words}),
        ("a" * 90, {"kind": "threshold", "value": 1e9, "for_s": 300, **words}),
        ("off", {"kind": "no_progress", "for_s": 600, "enabled": False}),
    ):
        answer = page.request.put(f"{site.url}/api/alerts/rules/{name}", data=body)
        assert answer.ok, answer.text()
    expect(rule(page, "much-loss")).to_contain_text("target broken answered 500")
    page.get_by_role("button", name="Test rule much-loss").click()
    expect(page.get_by_role("status", name="Test of rule much-loss")).to_contain_text("answered 500")
    _look(page, "list")
    for what, title in (("New rule", "New alert rule"), ("Edit target hook", "Target hook")):
        page.get_by_role("button", name=what).click()
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
        _look(page, title)
        page.keyboard.press("Escape")
    page.get_by_role("button", name="New target").click()
    page.get_by_role("dialog").get_by_label("Kind", exact=True).select_option("email")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_label("Name", exact=True)).to_have_accessible_description(
        re.compile("needs a name")
    )
    _look(page, "mail")
    page.keyboard.press("Escape")
    assert all("503" in line for line in console_errors), "the browser reports the test that failed"
    console_errors.clear()


def _look(page: Page, name: str) -> None:
    """Both themes, a desk and a phone. PICTURES names a folder for pictures of them."""
    folder = os.environ.get("PICTURES")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(CHECK, None) == []
    for theme in ("dark", "light"):
        page.evaluate(TO_DARK if theme == "dark" else TO_DARK.replace("dark", "light"))
        assert page.evaluate(CHECK, ["color-contrast"]) == []
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert not page.evaluate(SIDEWAYS)
            if folder:
                page.screenshot(path=Path(folder) / f"{name}-{theme}-{width}.png".replace(" ", "-"))


@pytest.mark.slow
def test_a_viewer_sees_rules_and_cannot_change_them(browser: Browser, tmp_path: Path) -> None:
    """A name that is not ours stands for another host, where the token decides who asks."""
    flags = ("--host", "0.0.0.0", "--no-agent")
    with Cluster(tmp_path / "data", *flags, environment={"STRATA_INSECURE": "1"}) as cluster:
        port = cluster.endpoints["http"].rpartition(":")[2]
        made = strata("token", "create", "--role", "viewer", "--data-dir", str(cluster.folder), STRATA_INSECURE="1")
        found = re.search(r"(?:STRATA_JOIN=)?(\S+)@\S+:\d+", made.stdout)
        assert found, made.stdout + made.stderr
        headers = {"Authorization": f"Bearer {(cluster.folder / 'token').read_text().strip()}"}
        for path, body in (
            ("targets/hook", {"kind": "webhook", "url": f"http://127.0.0.1:9/{SECRET}"}),
            ("rules/silent", {"kind": "no_progress", "for_s": 60, "targets": ["hook"]}),
        ):
            address = f"http://127.0.0.1:{port}/api/alerts/{path}"
            LOCAL.put(address, json=body, headers=headers).raise_for_status()
        with browser.new_context() as context:
            page = context.new_page()
            url = f"http://head.localhost:{port}"
            page.goto(url)
            eventually("the observatory to know the token", lambda: page.evaluate(SIGN_IN, found[1]))
            page.goto(f"{url}{RULES}")
            expect(rule(page, "silent")).to_contain_text("nothing was logged for 1m 00s")
            expect(target(page, "hook")).to_contain_text("http://127.0.0.1:9")
            expect(page.get_by_text("You may see rules and targets. An operator may change them.")).to_be_visible()
            expect(page.get_by_role("button", name=re.compile("^(New|Edit|Delete|Test) "))).to_have_count(0)
            assert SECRET not in page.content()
            for path, method in (("rules/silent", "DELETE"), ("targets/hook/test", "POST")):
                assert page.evaluate(ASK, [f"/api/alerts/{path}", method]) == 403
