"""A browser on another host: it sees the page, signs in with the token, and keeps a cookie that scripts cannot read."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.cluster import Cluster

pytestmark = pytest.mark.browser


def test_a_browser_elsewhere_signs_in(browser: Browser, tmp_path: Path) -> None:
    """A name that is not ours stands for the other host: for it the kernel's word does not count."""
    flags = ("--host", "0.0.0.0", "--no-agent")
    with Cluster(tmp_path / "data", *flags, environment={"STRATA_INSECURE": "1"}) as cluster:
        port = cluster.endpoints["http"].rpartition(":")[2]
        token = (cluster.folder / "token").read_text().strip()
        with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
            page = context.new_page()
            page.goto(f"http://head.localhost:{port}/")
            expect(page.get_by_text("Runs are not known yet")).to_be_visible()
            for claim in ("No run yet", "None yet.", "no save measured yet"):
                expect(page.get_by_text(claim)).to_have_count(0)
            page.goto(f"http://head.localhost:{port}/settings")
            expect(page.get_by_text("The server wants a token").first).to_be_visible()
            field = page.get_by_label("Token")
            field.fill("wrong")
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_text("this is not the cluster's token")).to_be_visible()
            field.fill(token)
            page.get_by_role("button", name="Sign in").click()
            expect(page).to_have_url(re.compile(rf":{port}/$"))
            expect(page.get_by_text("The server wants a token")).to_have_count(0)
            answer = page.evaluate("fetch('/api/tasks').then((answer) => answer.status)")
            assert answer == 200
            assert page.evaluate("document.cookie") == ""
            assert token not in str(context.cookies())
