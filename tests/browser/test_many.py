"""Many names and many runs: a page shows all of them, and holds and mounts what somebody looks at."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from strata.client.telemetry import send_batches
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import NO_DEVICE
from tests.support.cluster import Cluster
from tests.support.local_http import LOCAL
from tests.support.waiting import eventually

pytestmark = pytest.mark.browser

NAMES, WIDE_RUNS, STEPS = 4_000, 9, 3
"""36,000 series: more than one snapshot names, so that the page asks for the rest."""
FEW_RUNS = 120
OLD_RUNS = 600
"""More than one snapshot lists."""
RARE = "rare/figure"
"""Of one old run."""
EVERY_RUN = WIDE_RUNS + FEW_RUNS + OLD_RUNS


def metric_of(number: int) -> str:
    return f"layer{number // 10:03d}/grad_{number % 10}"


def wide_batch(run: int) -> Batch:
    batch = Batch(batch_id=f"many-{run}")
    batch.runs.add(run_id=f"wide-{run}", status="running", updated_at_ms=1)
    for index in range(NAMES):
        batch.series.add(index=index, run_id=f"wide-{run}", metric=metric_of(index), device=NO_DEVICE)
        batch.points.series.extend([index] * STEPS)
        batch.points.step.extend(range(STEPS))
        batch.points.value.extend([run + 0.5] * STEPS)
    return batch


def small_batch(name: str, runs: int, value: float, began_ms: int | None = None) -> Batch:
    """Runs of one point each."""
    batch = Batch(batch_id=name)
    for run in range(runs):
        batch.runs.add(run_id=f"{name}-{run:03d}", status="finished", updated_at_ms=1)
        batch.series.add(index=run, run_id=f"{name}-{run:03d}", metric="loss", device=NO_DEVICE)
        batch.points.series.append(run)
        batch.points.step.append(1)
        batch.points.value.append(value)
        if began_ms is not None:
            batch.points.event_time_ms.append(began_ms + run)
    return batch


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Cluster(tmp_path_factory.mktemp("many"), "--no-agent") as cluster:
        eventually("the store", lambda: cluster.get("/api/status")["metric_store_problem"] is None, within_s=120)
        few, old = small_batch("few", FEW_RUNS, 0.25), small_batch("old", OLD_RUNS, 0.5, began_ms=1_600_000_000_000)
        old.series.add(index=OLD_RUNS, run_id="old-001", metric=RARE, device=NO_DEVICE)
        old.points.series.append(OLD_RUNS)
        old.points.step.append(1)
        old.points.value.append(0.75)
        old.points.event_time_ms.append(1_600_000_000_001)
        batches = [*map(wide_batch, range(WIDE_RUNS)), few, old]
        send_batches(batches, cluster.endpoints["telemetry"])
        eventually("the runs", lambda: len(cluster.get("/runs")) == EVERY_RUN, within_s=60)
        yield cluster.endpoints["http"]


def look_at(page: Page, metric: str, run: str, total: int) -> None:
    """Filters the page down to one chart, until the run's points are in it."""
    page.get_by_role("searchbox", name=re.compile("Search metrics")).fill(metric)
    expect(page.locator("article[data-metric]")).to_have_count(1)
    expect(page.get_by_test_id("latest")).to_have_text(re.compile(r"\d"))
    page.wait_for_function(
        "([run, metric, total]) => window.__strata.series(run, metric)?.steps.length === total",
        arg=[run, metric, total],
    )


def test_search_finds_a_metric_of_a_run_whose_series_were_never_sent(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/overview")
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name=re.compile("Search"))
    for text in ("nothing is called so", "\ud800"):
        box.fill(text)
        expect(page.get_by_text("Nothing is called")).to_be_visible()
    box.fill("metric RARE figure")
    expect(page.get_by_role("option").filter(has_text=f"{RARE} · old-001")).to_be_visible()
    box.press("Enter")
    expect(page.get_by_role("dialog", name=RARE)).to_be_visible()
    page.wait_for_function(
        "([run, metric]) => window.__strata.series(run, metric)?.steps.length === 1", arg=["old-001", RARE]
    )


def test_every_name_of_every_run_is_found_and_follows_the_stream(page: Page, url: str) -> None:
    runs = ",".join(f"wide-{run}" for run in range(WIDE_RUNS))
    page.goto(f"{url}/ui/metrics?runs={runs}")
    expect(page.get_by_role("tab", name=re.compile("Training"))).to_contain_text(re.compile("4,?000"))
    expect(page.locator("article[data-metric] .uplot").first).to_be_visible()
    mounted = page.locator("article[data-metric]").count()
    assert mounted < 100, "charts that nobody sees are not there"
    for run in (0, WIDE_RUNS - 1):
        look_at(page, metric_of(3_997), f"wide-{run}", STEPS)

    # A point of a metric that nobody has looked at, of a run that the page was told of and of one that it asked for. It
    # may come by the stream, with the answer, or, on a machine this busy, with another snapshot: once, in any case.
    for run in (0, WIDE_RUNS - 1):
        body = {"points": [{"metric": metric_of(1_234), "step": STEPS, "value": 7.5}]}
        LOCAL.post(f"{url}/api/runs/wide-{run}/points", json=body).raise_for_status()
    for run in (0, WIDE_RUNS - 1):
        look_at(page, metric_of(1_234), f"wide-{run}", STEPS + 1)
    assert page.evaluate("() => window.__strata.counters().orphans") == 0


def test_rows_come_as_they_are_scrolled_to_and_change_alone(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/runs?q=few&sort=name")
    rows = page.get_by_role("region", name="Runs", exact=True).locator("tbody tr")
    expect(page.get_by_text(f"{FEW_RUNS} found")).to_be_visible()
    expect(rows.first).to_contain_text("few-000")
    assert rows.count() < FEW_RUNS

    def scrolled() -> bool:
        rows.last.scroll_into_view_if_needed()
        return rows.count() == FEW_RUNS

    eventually("all rows", scrolled, within_s=60)
    expect(rows.last).to_contain_text(f"few-{FEW_RUNS - 1:03d}")
    LOCAL.patch(f"{url}/api/runs/few-119", json={"notes": "the last one"}).raise_for_status()
    expect(rows.last).to_contain_text("the last one")
    LOCAL.delete(f"{url}/api/runs/few-119").raise_for_status()
    expect(rows).to_have_count(FEW_RUNS - 1)
    expect(rows.first).to_contain_text("few-000")


def test_a_run_that_is_not_among_the_newest_is_found_by_its_address(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/runs/old-000")
    expect(page.get_by_role("heading", name="old-000")).to_be_visible()
    number = len(LOCAL.get(f"{url}/runs").json())
    expect(page.get_by_role("button", name=re.compile("Choose runs"))).to_contain_text(f"of {number} runs")
    page.goto(f"{url}/ui/runs?sort=started")
    rows = page.get_by_role("region", name="Runs", exact=True).locator("tbody tr")
    expect(rows.first).to_contain_text("old-000")


@pytest.fixture
def newest(page: Page, url: str) -> Iterator[Callable[[str], None]]:
    """Opens a page that is told of the newest runs, and asks for all of them in vain."""
    every_run = re.compile(r"/api/runs$")
    page.route(every_run, lambda _: None)

    def opened(path: str) -> None:
        with page.expect_request(every_run):
            page.goto(url + path)

    yield opened
    page.unroute_all()


def test_an_order_is_right_before_all_runs_are_here(page: Page, newest: Callable[[str], None]) -> None:
    """The first of them is none of the newest."""
    newest("/ui/runs?q=old&sort=name")
    rows = page.get_by_role("region", name="Runs", exact=True).locator("tbody tr")
    expect(rows.first).to_contain_text("old-000")
    expect(rows.nth(1)).to_contain_text("old-001")
    expect(page.get_by_text(f"{OLD_RUNS} found · the first 300 are listed")).to_be_visible()
    newest("/ui/runs?q=nobody")
    expect(page.get_by_text("No run is like that")).to_be_visible()


def test_nothing_is_said_of_runs_that_are_not_here_yet(page: Page, newest: Callable[[str], None]) -> None:
    newest("/ui/metrics?runs=few-000")
    expect(page.get_by_role("group", name="Runs")).to_contain_text("1 of 500+ runs")
    page.get_by_role("button", name=re.compile("Choose runs")).click()
    page.get_by_role("textbox", name="Filter runs").fill("old-000")
    expect(page.get_by_text("None of the newest matches")).to_be_visible()


def test_a_run_that_the_snapshot_did_not_tell_of_is_drawn(page: Page, url: str) -> None:
    page.goto(f"{url}/ui/metrics?runs=old-000")
    look_at(page, "loss", "old-000", 1)
    assert page.evaluate("() => window.__strata.counters().orphans") == 0
