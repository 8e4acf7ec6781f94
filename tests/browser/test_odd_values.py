"""After odd values went through every door, each page opens without an error and shows its lists."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect

from tests.support.cluster import Cluster
from tests.support.doors import Doors
from tests.support.odd_values import ODD
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300), pytest.mark.slow]

_SENT = ("2^70+0", "lone high surrogate", "nan", "RTL override", "script", "azure", "many keys", "seconds of 2200")
_PAGES = {
    "/": "Overview", "/ui/runs": "store-probe", "/ui/metrics": "probe", "/ui/cluster": "w-odd", "/ui/data": "base",
    "/ui/checkpoints": "w-odd", "/ui/tasks": "Tasks", "/ui/logs": "Logs", "/ui/alerts": "Set aside",
    "/ui/settings": "Set aside",
}  # fmt: skip


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("odd") / "data", "--no-agent") as cluster:
        cluster.wait_for_store()
        where = cluster.endpoints
        with Doors(where["http"], where["grpc"], where["telemetry"]).prepare() as doors:
            for odd in ODD:
                if odd.name in _SENT:
                    doors.push(odd)
            assert doors.broken == []
        eventually("something set aside", lambda: cluster.get("/api/status")["set_aside"], within_s=60)
        yield cluster


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_every_page_opens_and_shows_its_lists(poisoned: Cluster, browser: Browser, width: int, scheme: str) -> None:
    errors: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):  # `hear_of` has the URL
            errors.append(message.text)

    def hear_of(answer: Response) -> None:
        if answer.status >= 400 and "/preview" not in answer.url:  # the datasets of the doors have no files
            errors.append(f"{answer.status} {answer.url}")

    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme) as context:  # type: ignore[arg-type]  # one of its words
        page = context.new_page()
        page.on("console", hear)
        page.on("response", hear_of)
        page.on("pageerror", lambda error: errors.append(str(error)))
        for path, text in _PAGES.items():
            _open(page, poisoned.endpoints["http"] + path)
            expect(page.locator("main").get_by_text(re.compile(re.escape(text))).first).to_be_attached()
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} px wide on a page of {width}"
    assert errors == []


def _open(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
