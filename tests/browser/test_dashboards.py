"""Dashboards: every kind of panel against values that the test logged itself, arranged by pointer and keyboard, saved,
shared with a second browser, exported and refused.
"""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.test_tour import AXE, CHECK, SIDEWAYS, TO_DARK
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.support.local_http import LOCAL

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

STEPS = 10
RATES = {"a1": 0.1, "a2": 0.1, "b1": 0.01, "b2": 0.01}
ODD = 'odd "näme" <b>'
SCRIPT = f"""
import numpy as np
import strata
for place, (name, lr) in enumerate({RATES!r}.items()):
    config = {{"lr": lr, "opt": ["adam", "sgd"][place % 2], {ODD!r}: place}}
    if name == "b2":
        del config["opt"]
    run = strata.init(run_id=name, project="sweep", group=f"lr {{lr}}", config=config)
    for step in range({STEPS}):
        run.log({{"train/loss": place + 10.0 - step, "val/loss": place + 0.5, "tokens": step * 512.0}}, step=step)
    run.log({{"train/loss": float("nan")}}, step={STEPS})
    run.log({{"picture": strata.Image(np.full((4, 4), 9, np.uint8)), "weights": strata.Histogram(np.arange(9.0)),
              "rows": strata.Table(["word"], [["hello"]])}}, step=0)
    assert run.finish(timeout_s=120) and run.dropped == 0
"""


class Boards:
    """An observatory with a sweep of four runs, and dashboards that the tests put there."""

    def __init__(self, process: ObservatoryProcess) -> None:
        self.url = process.http

    def put(self, name: str, panels: list[dict[str, Any]], **layout: Any) -> str:
        body = {
            "name": name,
            "project": "sweep",
            "layout": {"sections": [{"title": "All", "panels": panels}], **layout},
        }
        LOCAL.put(f"{self.url}/api/dashboards/{name}", json=body).raise_for_status()
        return f"/ui/dashboards/{name}"

    def panels(self, name: str) -> list[dict[str, Any]]:
        found = LOCAL.get(f"{self.url}/api/dashboards/{name}").json()
        return [panel for section in found["layout"]["sections"] for panel in section["panels"]]

    def open(self, page: Page, path: str) -> None:
        page.goto(self.url + path)
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boards]:
    folder = tmp_path_factory.mktemp("boards")
    process = ObservatoryProcess(folder / "data").start()
    try:
        wait_until(process.store_ready, "the store's start")
        elsewhere = {"STRATA_DATA_DIR": str(folder / "sdk"), "XDG_RUNTIME_DIR": str(folder)}
        environment = {**os.environ, **elsewhere, "STRATA_TELEMETRY_ADDR": process.telemetry}
        subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, timeout=300)
        yield Boards(process)
    finally:
        process.dispose()


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=name, exact=True)


def drawn(page: Page, name: str) -> None:
    """A chart that nobody sees is not there: first it is brought into sight."""
    panel(page, name).scroll_into_view_if_needed()
    expect(panel(page, name).locator("canvas").first).to_be_visible()


def test_a_dashboard_is_arranged_saved_and_restored_in_another_browser(
    page: Page, browser: Browser, boards: Boards, console_errors: list[str]
) -> None:
    boards.open(page, "/ui/dashboards")
    drawn(page, "train/loss, val/loss")  # made from what is there
    page.get_by_role("button", name="Add panel").click()
    page.get_by_role("button", name="Single number").click()
    dialog = page.get_by_role("dialog", name="Single number panel")
    dialog.get_by_role("textbox", name="Title").fill("Best of all")
    dialog.get_by_role("button", name=re.compile("^Column")).click()
    dialog.get_by_role("textbox", name="Search: Column").fill("val/loss.min")
    dialog.get_by_role("checkbox", name="val/loss.min").click()  # chosen, and the list closes
    dialog.get_by_role("combobox", name="Of which runs").select_option("min")
    dialog.get_by_role("button", name="Done").click()
    expect(panel(page, "Best of all")).to_contain_text("0.5")
    page.get_by_role("button", name=re.compile("^Group by")).click()
    page.get_by_role("checkbox", name="group", exact=True).click()
    page.get_by_role("button", name="Save", exact=True).click()
    save = page.get_by_role("dialog", name="Save dashboard")
    save.get_by_role("textbox", name="Name").fill("My board")
    save.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name="My board")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/ui/dashboards/my-board-\w+\?.*group=group"))

    with browser.new_context() as second:
        other = second.new_page()
        boards.open(other, page.url.split("?")[0].removeprefix(boards.url))
        expect(panel(other, "Best of all")).to_contain_text("0.5")
        expect(other.get_by_role("list", name="Groups by group")).to_contain_text("lr 0.1")  # saved with it
        other.get_by_role("button", name="Remove Best of all").click()
        other.get_by_role("button", name="Save", exact=True).click()
        expect(other.get_by_text("Saved as version 2.")).to_be_visible()

    page.get_by_role("textbox", name="Name of section 1").fill("Renamed")
    page.get_by_role("button", name="Save", exact=True).click()
    conflict = page.get_by_role("dialog", name="Somebody saved it meanwhile")
    conflict.get_by_role("button", name="Load theirs").click()
    expect(panel(page, "Best of all")).to_have_count(0)
    assert all("412" in line for line in console_errors), "the browser reports the refused save"
    console_errors.clear()


KINDS: dict[str, dict[str, Any]] = {
    "scatter": {"x": "config.lr", "y": "val/loss.min", "log_x": True},
    "bar": {"column": "val/loss.min"},
    "parallel": {"columns": ["config.lr", "config.opt", f"config.{ODD}"], "target": "val/loss.min"},
    "number": {"column": "val/loss.max", "reduce": "max"},
    "markdown": {"text": "# Notes\n\n**bold**\n\n<script>window.broken = 1</script>"},
    "histogram": {"key": "weights"},
    "image": {"key": "picture"},
    "table": {"key": "rows"},
}


@pytest.mark.slow
def test_every_kind_shows_what_was_logged(page: Page, boards: Boards) -> None:
    panels = [{"kind": kind, "id": kind, "title": kind, "w": 6, **rest} for kind, rest in KINDS.items()]
    boards.open(page, boards.put("kinds", panels))
    expect(panel(page, "scatter").locator("circle[data-run]")).to_have_count(len(RATES))
    bars = panel(page, "bar").get_by_role("listitem")
    expect(bars).to_have_text(
        [
            re.compile(f"{name}.*{value}")
            for name, value in zip(("b2", "b1", "a2", "a1"), ("3.5", "2.5", "1.5", "0.5"), strict=True)
        ]
    )
    told = panel(page, "parallel").get_by_role("region", name="Importance")
    expect(told.get_by_role("listitem").filter(has_text=ODD)).to_contain_text("+1.00")  # it rises with the place
    expect(told.get_by_role("listitem").filter(has_text="lr")).to_contain_text("rank correlation")
    expect(told.get_by_role("listitem").filter(has_text="opt")).to_contain_text("correlation ratio")
    expect(panel(page, "number")).to_contain_text("3.5")
    expect(panel(page, "markdown").locator("strong")).to_have_text("bold")
    assert page.evaluate("window.broken") is None
    for kind in ("histogram", "image"):
        drawn(page, kind)
    expect(panel(page, "table").get_by_text("hello").first).to_be_visible()


@pytest.mark.slow
def test_a_line_panel_draws_metrics_and_formulas_over_any_x_in_groups(
    page: Page, boards: Boards, tmp_path: Path
) -> None:
    line = {"kind": "line", "id": "p", "title": "gap", "w": 12, "metrics": [], "formulas": ["train/loss - val/loss"]}
    boards.open(page, boards.put("lines", [{**line, "x": "metric", "x_metric": "tokens"}]))
    rows = saved_csv(page, "gap", tmp_path)
    assert rows[0][0] == "tokens"
    assert [row[0] for row in rows[1:3]] == ["0", "512"]
    place = rows[0].index("a2")
    assert [float(row[place]) for row in rows[1:]] == [9.5 - step for step in range(STEPS)], "10 + 1 - step - 1.5"

    page.goto(f"{boards.url}/ui/dashboards/lines?group=config.lr&base=b1")
    expect(page.get_by_role("list", name="Groups by config.lr")).to_contain_text("0.01")
    rows = saved_csv(page, "gap", tmp_path)
    assert {name for name in rows[0] if not name.endswith((" min", " max"))} == {
        "tokens",
        "0.1 · 2 runs",
        "0.01 · 2 runs",
        "b1",
    }
    mean = rows[0].index("0.1 · 2 runs")
    assert [float(cell) for cell in rows[1][mean : mean + 3]] == [9.5, 9.5, 9.5], "both runs have the same gap"


def saved_csv(page: Page, name: str, folder: Path) -> list[list[str]]:
    drawn(page, name)
    page.get_by_role("button", name=f"Export {name}").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save CSV").click()
    download.value.save_as(folder / "chart.csv")
    with (folder / "chart.csv").open(encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.slow
def test_panels_are_moved_and_sized_by_pointer_and_keyboard(page: Page, boards: Boards) -> None:
    three = [{"kind": "markdown", "id": name, "title": name, "text": name, "w": 4, "h": 3} for name in "abc"]
    boards.open(page, boards.put("moved", three))
    page.get_by_role("button", name="Move a:").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    grip = page.get_by_role("button", name="Move c:").bounding_box()
    target = panel(page, "b").bounding_box()
    assert grip
    assert target
    page.mouse.move(grip["x"] + 5, grip["y"] + 5)
    page.mouse.down()
    page.mouse.move(target["x"] + 20, target["y"] + 60, steps=5)
    page.mouse.up()
    corner = panel(page, "b").get_by_test_id("resize").bounding_box()
    assert corner
    page.mouse.move(corner["x"] + 8, corner["y"] + 8)
    page.mouse.down()
    page.mouse.move(corner["x"] + 8 + target["width"] / 4, corner["y"] + 8, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved as version 2.")).to_be_visible()
    assert [(one["id"], one["w"], one["h"]) for one in boards.panels("moved")] == [
        ("c", 4, 3),
        ("b", 5, 3),
        ("a", 5, 4),
    ]
    page.get_by_role("button", name="Fold All").click()
    expect(panel(page, "a")).to_have_count(0)


@pytest.mark.slow
def test_a_file_goes_out_and_in_and_a_broken_one_is_refused_with_its_place(
    page: Page, boards: Boards, tmp_path: Path, console_errors: list[str]
) -> None:
    boards.open(page, boards.put("exported", [{"kind": "markdown", "id": "m", "text": "# Kept"}]))
    page.get_by_role("button", name="More").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export JSON").click()
    file = tmp_path / "board.json"
    download.value.save_as(file)

    def give(text: str) -> Locator:
        page.get_by_role("button", name="More").click()
        page.get_by_role("button", name="Import JSON…").click()
        page.get_by_label("Dashboard file").set_input_files(
            {"name": "x.json", "mimeType": "application/json", "buffer": text.encode()}
        )
        return page.get_by_role("dialog", name="Import dashboard")

    text = file.read_text(encoding="utf-8")
    refused = give(text.replace('"kind": "markdown"', '"kind": "pie"'))
    expect(refused.get_by_role("alert")).to_contain_text("sections.0.panels.0")
    page.keyboard.press("Escape")
    refused = give(text[:-20] + "}")
    expect(refused.get_by_role("alert")).to_contain_text("line")
    page.keyboard.press("Escape")
    give(text)
    expect(panel(page, "Kept")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/ui/dashboards/exported-\w+"))
    assert json.loads(text)["layout"]["sections"][0]["panels"][0]["text"] == "# Kept"
    assert all("422" in line or "400" in line for line in console_errors), "the browser reports the refused import"
    console_errors.clear()


@pytest.mark.slow
def test_runs_that_are_gone_and_ten_thousand_names(page: Page, boards: Boards, console_errors: list[str]) -> None:
    number = {"kind": "number", "id": "n", "title": "left", "column": "val/loss.last"}
    boards.open(page, boards.put("gone", [number], runs=["a1", "deleted-1"], baseline="deleted-2"))
    expect(page.get_by_text("1 of its 2 runs are gone (deleted-1). The baseline deleted-2 is gone.")).to_be_visible()
    expect(panel(page, "left")).to_contain_text("0.5")
    points = [{"metric": f"layer/{place}", "step": 0, "value": 1.0} for place in range(10_000)]
    answer = LOCAL.post(f"{boards.url}/api/runs/wide/points", json={"points": points})
    assert answer.status_code == 200, answer.text
    boards.open(page, boards.put("wide", [{"kind": "line", "id": "p", "title": "wide"}], runs=["wide"]))
    page.get_by_role("button", name="Edit wide").click()
    dialog = page.get_by_role("dialog", name="Lines panel")
    expect(dialog.get_by_placeholder("Search 10,000")).to_be_visible()
    assert dialog.get_by_role("group", name="Metrics").get_by_role("checkbox").count() < 60
    dialog.get_by_role("textbox", name="Search: Metrics").fill("layer/9999")
    dialog.get_by_role("checkbox", name="layer/9999").check()
    dialog.get_by_role("button", name="Done").click()
    drawn(page, "wide")
    boards.open(page, "/ui/dashboards/never-there")
    expect(page.get_by_text("There is no such dashboard")).to_be_visible()
    assert all("404" in line for line in console_errors)
    console_errors.clear()


@pytest.mark.slow
def test_axe_finds_nothing_and_a_phone_needs_no_sideways_scrolling(page: Page, boards: Boards) -> None:
    line = {"kind": "line", "id": "line", "title": "line", "metrics": ["train/loss", "val/loss"], "smoothing": 0.6}
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    panels = [line, *({"kind": kind, "id": kind, "title": kind, **rest} for kind, rest in KINDS.items())]
    boards.open(page, boards.put("axe", panels, group_by="config.lr", baseline="a1"))
    drawn(page, "line")
    expect(panel(page, "bar").get_by_role("listitem")).to_have_count(2)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(CHECK, None) == []
    page.evaluate(TO_DARK)
    assert page.evaluate(CHECK, ["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert not page.evaluate(SIDEWAYS)
