"""A picture of one page of a cluster, as a reader of our documentation sees it."""

from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from scripts.screenshots import chromium, shrink

__all__ = ["keep_picture"]

_WAIT_MS = 60_000


def keep_picture(url: str, target: Path) -> None:
    """Of a page with charts, light, when it is all there."""
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium()) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 790}, color_scheme="light", reduced_motion="reduce")
        page.goto(url)
        expect(page.locator("main canvas").first).to_be_visible(timeout=_WAIT_MS)
        expect(page.get_by_label("Loading")).to_have_count(0, timeout=_WAIT_MS)
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live", timeout=_WAIT_MS)
        page.screenshot(path=target)
    shrink(target)
