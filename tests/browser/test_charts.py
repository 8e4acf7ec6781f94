"""What people expect of a chart, against points that the test sent: brush and box, one cursor over all charts, log
axes, outliers, three kinds of smoothing, a legend by value, formulas, and what is saved as PNG, SVG and CSV.
"""

import csv
import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.support.local_http import LOCAL
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

STEPS = 100
OUTLIER = 50
VALUES = {
    "a": [10.0 + (1e6 if step == OUTLIER else step) for step in range(STEPS)],
    "b": [110.0 - step - (1 if step % 2 else 0) for step in range(STEPS)],
}
TIP = "body > div[aria-hidden=true].fixed"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = ObservatoryProcess(tmp_path_factory.mktemp("charts") / "data").start()
    try:
        wait_until(process.store_ready, "the store's start")
        for run, values in VALUES.items():
            points = [{"metric": "loss", "step": step, "value": value} for step, value in enumerate(values)]
            points += [{"metric": "acc", "step": step, "value": float(step - 5)} for step in range(STEPS)]
            LOCAL.post(f"{process.http}/api/runs/{run}/points", json={"points": points}).raise_for_status()
        yield process.http
    finally:
        process.dispose()


def card(page: Page, metric: str) -> Locator:
    return page.locator(f'article[data-metric="{metric}"]')


def box_of(page: Page, metric: str) -> FloatRect:
    over = card(page, metric).locator(".u-over")
    expect(over).to_be_visible()
    return eventually(f"the chart of {metric}", over.bounding_box)  # none while it is drawn anew


def saved(page: Page, metric: str, form: str) -> bytes:
    box_of(page, metric)  # drawn: before that there is nothing to save
    card(page, metric).hover()
    card(page, metric).get_by_role("button", name=f"Export {metric.removeprefix('=')}").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save {form}").click()
    return download.value.path().read_bytes()


def rows(page: Page, metric: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(saved(page, metric, "CSV").decode())))


def steps(page: Page, metric: str) -> tuple[int, int]:
    found = [int(row["step"]) for row in rows(page, metric)]
    return min(found), max(found)


def words(page: Page, metric: str) -> list[str]:
    """The labels of a chart's axes, and the names below it."""
    picture = ElementTree.fromstring(saved(page, metric, "SVG"))  # noqa: S314 - our own page made it
    return [one.text for one in picture.iter() if one.text]


def drag(page: Page, metric: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Shares of the chart's box."""
    box = box_of(page, metric)
    page.mouse.move(box["x"] + box["width"] * start[0], box["y"] + box["height"] * start[1])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end[0], box["y"] + box["height"] * end[1], steps=8)
    page.mouse.up()


def test_brush_box_and_cursor(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/metrics")
    assert steps(page, "acc") == (0, STEPS - 1)
    drag(page, "loss", (0.2, 0.5), (0.4, 0.5))
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    low, high = steps(page, "acc")
    assert 15 <= low <= 25 <= 35 <= high <= 45, "every chart with this axis follows"
    box = box_of(page, "loss")
    page.mouse.dblclick(box["x"] + 30, box["y"] + 30)
    expect(page.get_by_role("button", name="Reset zoom")).to_have_count(0)
    expect(page.get_by_test_id("incident")).to_have_count(0)  # two clicks ask for no trail
    assert steps(page, "acc") == (0, STEPS - 1)

    assert any("M" in word or "1,000,000" in word for word in words(page, "loss")), "the outlier is on the axis"
    page.keyboard.down("Shift")
    drag(page, "loss", (0.1, 0.9), (0.9, 1.0))
    page.keyboard.up("Shift")
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    assert not any(word.endswith("M") for word in words(page, "loss")), "a box is also a part of the y axis"
    page.get_by_role("button", name="Reset zoom").click()

    other = card(page, "acc").locator(".u-cursor-x")
    box, beside = box_of(page, "loss"), box_of(page, "acc")
    for share, first in ((0.1, "b"), (0.95, "a")):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * 0.3, steps=3)
        tip = page.locator(TIP)
        expect(tip).to_be_visible()
        names = [name for name in re.split(r"\W+", tip.inner_text()) if name in VALUES]
        assert names[0] == first, f"the legend at the cursor stands by value: {names}"
        line = other.bounding_box()
        assert line
        assert abs((line["x"] - beside["x"]) / beside["width"] - share) < 0.05, "one cursor over all charts"


def new_picture(page: Page, known: set[bytes]) -> bytes | None:
    picture = saved(page, "loss", "SVG")
    return picture if picture not in known else None


@pytest.mark.slow
def test_axes_outliers_smoothing_and_formulas(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/metrics")
    page.get_by_role("button", name="Chart options").click()
    options = page.get_by_role("group", name="Curves")
    options.get_by_role("checkbox", name="Clip outliers").check()
    eventually("an axis without the outlier", lambda: not any(word.endswith("M") for word in words(page, "loss")))
    page.get_by_role("button", name="Chart options").click()
    options.get_by_role("checkbox", name="Clip outliers").uncheck()
    options.get_by_role("checkbox", name="Log x").check()
    options.get_by_role("checkbox", name="Log y").check()
    eventually("log axes", lambda: {"1", "10"} <= set(words(page, "acc")))
    below = {int(row["step"]): row["a"] for row in rows(page, "acc")}
    assert (below[3], below[20]) == ("-2", "15"), "what a log axis has no room for is a number, and no NaN"
    page.get_by_role("button", name="Chart options").click()
    options.get_by_role("checkbox", name="Log x").uncheck()
    options.get_by_role("checkbox", name="Log y").uncheck()
    drawn = {saved(page, "loss", "SVG")}
    page.get_by_role("button", name="Chart options").click()
    for kind in ("ema", "mean", "gauss"):
        if not options.is_visible():
            page.get_by_role("button", name="Chart options").click()
        options.get_by_label("Smoothing amount").fill("0.9")
        options.get_by_label("Smoothing kind").select_option(kind)
        drawn.add(eventually(f"a line of its own by {kind}", lambda: new_picture(page, drawn)))
    page.get_by_role("button", name="Chart options").click()
    page.get_by_role("textbox", name="Formula").fill("loss - acc * 2")
    page.get_by_role("button", name="Add formula").click()
    expect(card(page, "=loss - acc * 2").locator(".u-over")).to_be_visible()
    found = {int(row["step"]): float(row["b"]) for row in rows(page, "=loss - acc * 2")}
    assert found == {step: value - 2 * (step - 5) for step, value in enumerate(VALUES["b"])}


@pytest.mark.slow
def test_a_chart_is_saved_as_it_is_shown(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/metrics")
    assert {name: [float(row[name]) for row in rows(page, "loss")] for name in VALUES} == VALUES
    picture = saved(page, "loss", "PNG")
    assert picture.startswith(b"\x89PNG")
    width, height = int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])
    assert width >= box_of(page, "loss")["width"]
    assert height > box_of(page, "loss")["height"], "with its title and legend"
    assert {"loss", *VALUES} <= set(words(page, "loss"))
