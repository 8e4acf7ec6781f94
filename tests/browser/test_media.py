"""Media on the page: pictures that follow a slider, strips, tables, documents that reach nothing, and odd ones among
them. What a canvas shows is compared with the pixels that were logged.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site
from tests.browser.test_tour import AXE, CHECK, SIDEWAYS, TO_DARK
from tests.support.cluster import Cluster, strata
from tests.support.local_http import LOCAL

pytestmark = pytest.mark.browser

STEPS = 40
SCRUBBED = 10_000
NAMES = 10_000
PROBE = """
<p id=out></p><script>
const out = [`origin ${origin}`];
const attempt = (name, act) => { try { act(); out.push(`${name} reached`); } catch { out.push(`${name} refused`); } };
attempt("parent", () => parent.document.title);
attempt("cookie", () => document.cookie);
attempt("storage", () => localStorage.length);
fetch("/api/runs").then(() => out.push("api reached"), () => out.push("api refused"))
  .finally(() => { document.getElementById("out").textContent = out.join(", "); });
</script>
"""
SCRIPT = f"""
import sys
import numpy as np
import strata
name, shift = sys.argv[1], int(sys.argv[2])
run = strata.init(run_id=name)
for step in range({STEPS}):
    shade = np.full((8, 8), step + shift, np.uint8)
    run.log({{"shade": strata.Image(shade, caption=f"{{name}} at {{step}}"), "loss": 1.0}}, step=step)
    run.log({{"weights": strata.Histogram([0.0, 1.0, 1.0, np.nan])}}, step=step)
rows = [[f"row {{n}}", n % 7, strata.Image(np.full((2, 2), n, np.uint8))] for n in range(20)]
run.log({{"predictions": strata.Table(["name", "score", "picture"], rows)}})
run.log({{"report": strata.Text("**bold** <script>window.broken = 1</script>")}})
run.log({{"nothing": strata.Histogram([np.nan] * 3), "loss": strata.Image(np.eye(4), caption="a\\ud800")}})
assert run.finish(timeout_s=120) and run.dropped == 0
"""
DOCUMENT = f"""
import strata
strata.init(run_id="bare").log({{"loss": 1.0}})
strata.finish()
run = strata.init(run_id="document")
run.log({{"page": strata.Html({PROBE!r})}})
assert run.finish(timeout_s=120) and run.dropped == 0
"""
MANY = f"""
import numpy as np
import strata
run = strata.init(run_id="many")
for step in range({SCRUBBED}):
    run.log({{"frame": strata.Image(np.full((64, 64), step % 256, np.uint8))}}, step=step)
    if step % 500 == 0:
        run.reporter.secure()
for number in range({NAMES}):
    run.log({{f"name/{{number:05d}}": strata.Text(f"text {{number}}")}}, step=1)
    if number % 500 == 0:
        run.reporter.secure()
assert run.finish(timeout_s=300) and run.dropped == 0
"""
TRAINED = 30
# Two ranks learn which side of a line a point lies on; the picture is what the model says of every place.
TRAINING = f"""
import json, sys
import numpy as np
import strata

truth = np.array([1.5, -2.0, 0.3])
model = {{"weights": np.zeros(3)}}
grid = np.stack([*np.meshgrid(np.linspace(-1, 1, 16), np.linspace(-1, 1, 16)), np.ones((16, 16))], axis=-1)
shades = {{}}
with strata.training(model=model, total={TRAINED}, every=10, seed=0) as job:
    for step in job:
        x = np.c_[np.random.uniform(-1, 1, size=(64, 2)), np.ones(64)]
        said = 1 / (1 + np.exp(-x @ model["weights"]))
        total = job.run.gang.sum(x.T @ (said - (x @ truth > 0)))
        model["weights"] = model["weights"] - 0.05 * total
        job.log(loss=float(np.abs(total).sum()))
        if job.rank == 0:
            picture = np.round(255 / (1 + np.exp(-grid @ model["weights"]))).astype(np.uint8)
            shades[step] = int(picture[0, 0])
            job.run.log({{"map": strata.Image(picture), "weights": strata.Histogram(model["weights"])}}, step=step)
    if job.rank == 0:
        with open(sys.argv[1], "w") as file:
            json.dump(shades, file)
"""
PIXEL = "canvas => canvas.getContext('2d').getImageData(0, 0, 1, 1).data[0]"
# One place further with every frame that the browser draws; what was painted is counted by the page itself.
SCRUB = """async ([slider, from, to]) => {
  for (let at = from; at <= to; at++) {
    slider.value = at;
    slider.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise(requestAnimationFrame);
  }
}"""


def log(cluster: Cluster, script: str, *arguments: str) -> None:
    environment = {**os.environ, "STRATA_DATA_DIR": str(cluster.folder)}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def logged(cluster: Cluster) -> Iterator[Site]:
    site = Site(cluster, "")
    log(cluster, SCRIPT, "pictures", "0")
    log(cluster, SCRIPT, "others", "100")
    log(cluster, DOCUMENT)
    yield site
    for name in ("pictures", "others", "document", "bare"):
        LOCAL.delete(f"{site.url}/api/runs/{name}")


def slide(page: Page, metric: str, at: int) -> None:
    slider = page.get_by_role("slider", name=f"Step of {metric}", exact=True)
    slider.evaluate(f"(one) => {{ one.value = {at}; one.dispatchEvent(new InputEvent('input', {{bubbles: true}})); }}")


def test_pictures_follow_the_slider(page: Page, logged: Site) -> None:
    logged.open(page, "/ui/runs/pictures")
    view = page.locator("[data-media='pictures/shade']")
    expect(view).to_have_attribute("data-step", str(STEPS - 1))
    assert view.locator("canvas").evaluate(PIXEL) == STEPS - 1
    for step in (0, 17, STEPS - 1, 3):
        slide(page, "shade", step)
        expect(view).to_have_attribute("data-step", str(step))
        assert view.locator("canvas").evaluate(PIXEL) == step
        expect(view.locator("figcaption")).to_have_text(f"pictures at {step}")


@pytest.mark.slow
def test_a_real_training_shows_its_pictures_and_histograms(page: Page, cluster: Cluster, tmp_path: Path) -> None:
    script, seen = tmp_path / "train.py", tmp_path / "shades.json"
    script.write_text(TRAINING)
    done = strata("run", "--workers", "2", "--data-dir", str(cluster.folder), str(script), str(seen))
    assert done.returncode == 0, done.stdout + done.stderr
    shades = {int(step): shade for step, shade in json.loads(seen.read_text()).items()}
    assert len(shades) == TRAINED
    assert len(set(shades.values())) > TRAINED / 2, "it learns"
    site = Site(cluster, "")
    (run,) = [one["run_id"] for one in site.get("/runs") if one["name"] and one["name"].startswith("train")]
    site.open(page, f"/ui/runs/{run}")
    view = page.locator(f"[data-media='{run}/map']")
    for place, (step, shade) in enumerate(sorted(shades.items())):
        slide(page, "map", place)
        expect(view).to_have_attribute("data-step", str(step))
        assert view.locator("canvas").evaluate(PIXEL) == shade
    strip = page.get_by_role("img", name=re.compile(f"^weights: {TRAINED} histograms up to step {max(shades)}"))
    expect(strip).to_be_visible()
    LOCAL.delete(f"{site.url}/api/runs/{run}")


@pytest.mark.slow
def test_runs_stand_side_by_side_in_every_kind(page: Page, logged: Site) -> None:
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    logged.open(page, "/ui/metrics?tab=media&runs=pictures,others")
    slide(page, "shade", 5)
    for run, shade in (("pictures", 5), ("others", 105)):
        view = page.locator(f"[data-media='{run}/shade']")
        expect(view).to_have_attribute("data-step", "5")
        assert view.locator("canvas").evaluate(PIXEL) == shade
    strips = page.get_by_role("img", name=re.compile(f"^weights: {STEPS} histograms up to step {STEPS - 1}"))
    expect(strips).to_have_count(2)
    expect(page.get_by_text("No finite value was logged: 3 were NaN or infinite.")).to_have_count(2)
    tables = page.get_by_role("region", name=re.compile("^predictions"))
    expect(tables).to_have_count(2)
    table = tables.first
    expect(table.get_by_role("row")).to_have_count(21)
    table.get_by_role("button", name="score").click()
    table.get_by_role("button", name="score").click()
    expect(table.get_by_role("row").nth(1)).to_contain_text("row 6")
    picture = table.get_by_role("img").first
    expect(picture).to_be_visible()
    page.wait_for_function("(one) => one.naturalWidth === 2", arg=picture.element_handle())
    expect(page.locator("strong", has_text="bold")).to_have_count(2)
    expect(page.get_by_text("<script>window.broken = 1</script>").first).to_be_visible()
    assert page.evaluate("window.broken") is None
    expect(page.get_by_role("img", name="loss at step", exact=False).first).to_be_visible()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(CHECK, None) == []
    page.evaluate(TO_DARK)
    assert page.evaluate(CHECK, ["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert not page.evaluate(SIDEWAYS)


@pytest.mark.slow
def test_a_document_runs_in_no_origin_of_ours(page: Page, logged: Site, console_errors: list[str]) -> None:
    logged.open(page, "/ui/runs/document")
    refused = "origin null, parent refused, cookie refused, storage refused, api refused"
    frame = page.frame_locator("iframe")
    page.locator("iframe").scroll_into_view_if_needed()
    expect(frame.locator("#out")).to_have_text(refused)
    address = page.locator("iframe").get_attribute("src")
    page.goto(f"{logged.url}{address}")  # by itself it has no origin, either
    expect(page.locator("#out")).to_have_text(
        re.compile("^origin null, .*cookie refused, storage refused, api refused$")
    )
    console_errors.clear()  # the browser reports what it refused


@pytest.mark.slow
def test_without_media_and_without_their_files(page: Page, logged: Site, console_errors: list[str]) -> None:
    logged.open(page, "/ui/metrics?tab=media&runs=bare")
    expect(page.get_by_text("No media yet")).to_be_visible()
    expect(page.get_by_text("strata.Image(pixels)")).to_be_visible()
    shutil.rmtree(logged.cluster.folder / "checkpoints" / ".media" / "others")
    with page.context.browser.new_context() as fresh:  # type: ignore[union-attr]  # a context of a browser has it
        other = fresh.new_page()
        logged.open(other, "/ui/runs/others")
        expect(other.locator("[data-media='others/shade'] figcaption")).to_have_text("This picture cannot be shown.")
        expect(other.get_by_text("The table cannot be read")).to_be_visible()
        expect(other.get_by_text("The file was removed.")).to_be_visible()
        expect(other.locator("strong", has_text="bold")).to_be_visible()
    console_errors.clear()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_steps_and_names(page: Page, cluster: Cluster, logged: Site) -> None:
    log(cluster, MANY)
    logged.open(page, "/ui/runs/many")
    view = page.locator("[data-media='many/frame']")
    expect(view).to_have_attribute("data-step", str(SCRUBBED - 1))
    slider = page.get_by_role("slider", name="Step of frame")
    before = int(view.get_attribute("data-frames") or 0)
    page.evaluate(SCRUB, [slider.element_handle(), 4_000, 4_300])
    expect(view).to_have_attribute("data-step", "4300")
    assert view.locator("canvas").evaluate(PIXEL) == 4_300 % 256
    assert int(view.get_attribute("data-frames") or 0) - before >= 30, "pictures are drawn while it moves"
    expect(page.get_by_text("search for others")).to_be_visible()
    page.get_by_role("searchbox", name="Find media by name").fill("name/09999")
    expect(page.get_by_text("text 9999")).to_be_visible()
    LOCAL.delete(f"{logged.url}/api/runs/many")
