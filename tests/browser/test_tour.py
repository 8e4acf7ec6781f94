"""Every page, loaded once: axe finds nothing serious in either theme, a phone needs no sideways scrolling."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site

pytestmark = pytest.mark.browser

PAGES = (
    "/",
    "/ui/runs",
    "/ui/runs/{task}",
    "/ui/metrics",
    "/ui/dashboards",
    "/ui/metrics?tab=system",
    "/ui/metrics?tab=checkpoints",
    "/ui/metrics?tab=progress",
    "/ui/metrics?m=loss",
    "/ui/cluster",
    "/ui/cluster?view=shards",
    "/ui/cluster?view=barriers",
    "/ui/cluster?view=heatmap",
    "/ui/cluster/{worker}",
    "/ui/data",
    "/ui/checkpoints",
    "/ui/tasks",
    "/ui/tasks/{task}",
    "/ui/logs",
    "/ui/alerts",
    "/ui/settings",
    "/ui/no-such-page",
)
SOON = ("/", "/ui/metrics", "/ui/tasks/{task}")
"""Looked at by `make test`, the others by `make test-all`."""
AXE = Path(__file__).resolve().parents[2] / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
CHECK = """async (rules) => {
  const { violations } = await axe.run(document, {
    resultTypes: ["violations"],
    ...(rules && { runOnly: { type: "rule", values: rules } }),
  });
  return violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`);
}"""
TO_DARK = """() => { document.documentElement.dataset.theme = "dark"; }"""
SIDEWAYS = (
    "document.documentElement.scrollWidth > innerWidth || document.querySelector('main').scrollWidth > innerWidth"
)


@pytest.mark.parametrize(
    "path", [path if path in SOON else pytest.param(path, marks=pytest.mark.slow) for path in PAGES]
)
def test_page(page: Page, site: Site, path: str) -> None:
    assert AXE.exists(), "axe-core is a dev dependency of the dashboard: `npm install --no-audit --no-fund` there"
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    site.open(page, path.format(task=site.task, worker=site.workers()[0]["id"]))
    expect(page.get_by_label("Loading")).to_have_count(0)
    expect(page.locator("main h1")).to_have_count(1)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(CHECK, None) == []
    page.evaluate(TO_DARK)  # a theme is nothing but colours, so only their contrast can differ
    assert page.evaluate(CHECK, ["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert not page.evaluate(SIDEWAYS)
