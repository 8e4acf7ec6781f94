"""The page audit: every number on every page against a truth that the test made itself: values it logged, a rank it
killed, bytes it wrote, heartbeats it sent. Nothing trains any more while pages are read.
"""

import re
import statistics
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.audit_train import EVERY, STEPS, STOP, loss_of, rate_of
from tests.browser.audit_world import PLAIN, SAMPLES, SAVED_TAGS, SHARD_SIZE, STATES, WIDE, AuditWorld, PlainWorkers
from tests.browser.site import row, stat
from tests.browser.words import age_of, as_bytes, as_count, as_duration, as_rate, as_value
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]

RANKS = range(4)
RESUMED = STOP // EVERY * EVERY
"""The last step that was saved before the kill: the second attempt begins after it."""
LOSS = as_value(sum(loss_of(STEPS, rank) for rank in RANKS) / 4)
RATE = as_value(sum(rate_of(rank) for rank in RANKS) / 4)
LOGGED = STOP + STEPS - RESUMED
"""Points of each metric that a rank logged in its two attempts. STEPS of them count: the others were done again."""
NAMES = {"loss", "throughput/samples_per_sec", "checkpoint_save", "milestone/a"}
DEALT = [5, 5, 6]
"""1,000 samples in shards of 64 are 16 shards, dealt to three plain workers."""
OWN = 2 * len(RANKS)
"""Series of the task: two metrics of each rank. The host's own, named sys.*, come on top."""
PAGES = ("/", "/ui/runs", "/ui/metrics", "/ui/cluster", "/ui/data", "/ui/checkpoints", "/ui/tasks", "/ui/logs",
         "/ui/alerts", "/ui/settings")  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditWorld]:
    folder = tmp_path_factory.mktemp("audit")
    with Cluster(folder / "state", "--slots", "4") as cluster:
        made = AuditWorld(cluster, folder).make()
        with PlainWorkers(cluster.endpoints["grpc"]):
            eventually("the plain workers", lambda: len(made.get("/api/workers")) == len(PLAIN), within_s=60)
            yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Wide enough for every column."""
    with browser.new_context(viewport={"width": 1440, "height": 1000}) as context:
        yield context.new_page()


def look(page: Page, world: AuditWorld, path: str) -> Locator:
    page.goto(world.url + path)
    expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")
    return page.locator("main")


def fact(page: Page, name: str) -> Locator:
    return page.locator(f"main dt:text-is('{name}') + dd").first


def cells(line: Locator) -> list[str]:
    expect(line).to_be_visible()
    return [text.strip() for text in line.get_by_role("cell").all_inner_texts()]


def run_row(page: Page, run: str) -> Locator:
    """By its link: a run may be named as another one's state."""
    named = page.get_by_role("link", name=run, exact=True)
    return page.get_by_role("region", name="Runs", exact=True).get_by_role("row").filter(has=named).first


def test_overview(page: Page, world: AuditWorld) -> None:
    main = look(page, world, f"/?runs={world.task}")
    expect(stat(page, "Step")).to_have_text(as_count(STEPS))
    expect(stat(page, "Progress")).to_have_text("100.0%")
    expect(stat(page, "loss")).to_have_text(LOSS)
    expect(stat(page, "throughput/samples_per_sec")).to_have_text(RATE)
    expect(main).to_contain_text("attempt 2")
    expect(main).to_contain_text(f"{len(PLAIN)} active")
    expect(stat(page, "Size")).to_have_text(as_bytes(world.saved_bytes(STEPS)))
    expect(main).to_contain_text(f"step {STEPS}")
    expect(page.locator("main article[data-metric]")).to_have_count(2)
    expect(main).to_contain_text(f"worker {world.victim} is lost: rank 2 was killed by signal 9 (SIGKILL)")


def test_system_figures_are_on_every_page(page: Page, world: AuditWorld) -> None:
    for path in PAGES:
        look(page, world, path)
        for figure in ("checkpoint_throughput", "coordinator_rps", "barrier_latency_p99", "shard_assignment_time"):
            shown = page.locator(f"[data-figure={figure}] dd")

            def agree(figure: str = figure, shown: Locator = shown) -> bool:
                told = world.get("/api/metrics")[figure]
                text = "–" if told is None else as_value(round(told, 1) if told < 100 else round(told))
                return shown.inner_text().startswith(text)

            eventually(f"{figure} on {path} agrees", agree, within_s=30)


def test_runs(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/runs")
    points = OWN * STEPS
    for run, words in {
        world.task: [as_count(STEPS), LOSS, as_value(loss_of(STEPS, 0))],
        "finished": ["10", "0.1", "0.1", "10"],
        "failed": ["10", "0.1", "0.1", "10"],
        "killed": ["10", "0.1", "0.1", "10"],
        "lost": ["10", "0.1", "0.1", "10"],
        "wide": ["0", "–", "–", "10k"],
        "foreign": ["500", "–", "–", "2"],
    }.items():
        line = run_row(page, run)
        place = 5  # after name, status, group, start and time
        for offset, word in enumerate(words):
            expect(line.get_by_role("cell").nth(place + offset)).to_have_text(word)
    for run, state in {**STATES, world.task: "finished"}.items():
        expect(run_row(page, run).get_by_role("cell").nth(1)).to_have_text(state)
    told = next(one for one in world.get("/runs") if one["run_id"] == world.task)
    host = sum(one["total_points"] for one in world.series(world.task) if one["metric"].startswith("sys."))
    assert told["num_points"] == points + host


def test_run(page: Page, world: AuditWorld) -> None:
    look(page, world, f"/ui/runs/{world.task}")
    expect(fact(page, "Step")).to_have_text(as_count(STEPS))
    figures = row(page, "Summary of the metrics", "loss").get_by_role("cell")
    expect(figures.nth(1)).to_have_text(LOSS)
    expect(figures.nth(2)).to_have_text(as_value(loss_of(STEPS, 0)))
    expect(fact(page, "Task")).to_have_text(world.task)
    host = [one for one in world.series(world.task) if one["metric"].startswith("sys.")]
    points = OWN * STEPS + sum(one["total_points"] for one in host)
    expect(fact(page, "Series")).to_have_text(f"{OWN + len(host)} series, {as_count(points)} points")
    for key, value in {"lr": "0.125", "steps": str(STEPS)}.items():
        expect(row(page, "Config of the runs on show", key)).to_contain_text(value)
    for run, words in {"lost": "1 series, 10 points", "foreign": "2 series, 2 points"}.items():
        look(page, world, f"/ui/runs/{run}")
        expect(fact(page, "Series")).to_have_text(words)


def test_the_points_of_a_metric(page: Page, world: AuditWorld) -> None:
    """Every point of every rank, as the table of the full view lists them."""
    look(page, world, f"/ui/metrics?runs={world.task}&ranks=all&m=loss")
    expect(page.locator("article[data-metric=loss]").last.get_by_test_id("latest")).to_have_text(LOSS)
    page.get_by_role("button", name="View as table").click()
    lines = page.get_by_role("dialog").locator("tbody tr")
    expect(lines).to_have_count(STEPS)
    shown = [[cell.strip() for cell in line.split("\t")] for line in lines.all_inner_texts()]
    assert [line[0] for line in shown] == [f"step {step}" for step in range(1, STEPS + 1)]
    for step, line in enumerate(shown, start=1):
        assert line[1:] == [as_value(loss_of(step, rank)) for rank in RANKS], f"step {step}"
    for one in world.series(world.task, "loss"):
        assert one["total_points"] == STEPS
    for one in world.series(world.task, "loss", attempts="superseded"):
        assert one["steps"] == list(range(RESUMED + 1, STOP + 1))
    everything = world.series(world.task, "loss", attempts="all")
    assert sum(one["total_points"] for one in everything) == LOGGED * len(RANKS)


def test_a_run_of_ten_thousand_names(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/metrics?runs=wide")
    expect(page.get_by_role("tab", name="Training")).to_contain_text(str(WIDE))
    for number in (0, 1, WIDE // 2, WIDE - 1):
        name = f"name/{number:05d}"
        page.get_by_label("Search metrics by regular expression").fill(f"^{name}$")
        card = page.locator(f"article[data-metric='{name}']")
        expect(card.get_by_test_id("latest")).to_have_text(as_value(number))
        expect(card.locator("canvas")).to_be_visible()
        expect(card).not_to_contain_text("have not logged this")


def test_panels_are_those_of_the_runs_on_show(page: Page, world: AuditWorld) -> None:
    look(page, world, f"/ui/metrics?runs={world.task}")
    expect(page.locator("main article[data-metric]")).to_have_count(2)
    expect(page.get_by_text("have not logged this")).to_have_count(0)
    look(page, world, "/ui/metrics")
    runs = len(world.get("/runs"))
    expect(page.get_by_role("group", name="Runs")).to_contain_text(f"{runs} of {runs} runs")


def test_foreign_checkpoints_and_milestones(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/metrics?tab=checkpoints")
    line = row(page, "Checkpoints of the runs on show", "foreign")
    expect(line).to_contain_text(as_bytes(SAVED_TAGS["size_bytes"]))
    expect(line).to_contain_text(f"checkpoint_save 12.5 · path {SAVED_TAGS['path']}")
    table = page.get_by_role("region", name="Checkpoints of the runs on show")
    expect(table.get_by_role("row").filter(has_text=world.task)).to_have_count(STEPS // EVERY)
    page.get_by_role("tab", name="Progress").click()
    expect(page.get_by_role("progressbar", name="milestone/a: 3")).to_be_visible()


def test_workers(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/cluster")
    shards = {one["id"]: one["assigned_shards"] for one in world.get("/api/workers")}
    assert sorted(shards.values()) == DEALT
    use = {"plain-silent": "–", "plain-partly": "12%", "plain-gpus": "50%"}
    memory = {"plain-silent": "–", "plain-partly": "–", "plain-gpus": "3.00 MB"}
    for rank, name in enumerate(PLAIN):
        shown = cells(row(page, "Workers", name))
        assert shown[:4] == [str(rank), name, "active", f"plain-host:{7_000 + rank}"]
        assert shown[5:] == [use[name], "0", memory[name], "1", "7", str(shards[name]), "–"]


def test_shards_of_each_worker(page: Page, world: AuditWorld) -> None:
    main = look(page, world, "/ui/cluster?view=shards")
    expect(main).to_contain_text("16 shards · max − min 1")
    for name in PLAIN:
        expect(main).to_contain_text(name)
    shown = main.get_by_text(re.compile(r"^\d+ shards$")).all_inner_texts()
    assert sorted(int(words.split()[0]) for words in shown) == DEALT


def test_worker(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/cluster/plain-gpus")
    expect(fact(page, "CPU")).to_have_text("50%")
    expect(fact(page, "Memory")).to_have_text("3.00 MB")
    expect(fact(page, "GPU 0")).to_have_text(re.compile("^25% ?3.00 GB of 16.0 GB · 61 °C$"))
    expect(fact(page, "GPU 1")).to_have_text(re.compile("^75% ?3.00 GB of 16.0 GB · 61 °C$"))
    expect(fact(page, "Disk")).to_have_text("5.00 KB read · – written")
    expect(fact(page, "Network of its host")).to_have_text("– in · – out")
    expect(fact(page, "Epoch / step")).to_have_text("1 / 7")
    look(page, world, "/ui/cluster/plain-silent")
    expect(page.get_by_text("This worker has not reported its resources.")).to_be_visible()


def test_barriers(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/cluster?view=barriers")
    waiting = page.locator("[data-barrier]")
    expect(waiting).to_have_count(1)
    expect(waiting).to_contain_text("audit-waits of plain workers waits for rank 0 (plain-silent)")
    expect(waiting).to_contain_text("2 of 3")
    table = page.get_by_role("region", name="Barriers")
    ended = table.get_by_role("row").filter(has_text="audit-step")
    expect(ended).to_have_count(LOGGED)
    expect(table.get_by_role("row").filter(has_text=world.task)).to_have_count(LOGGED + 1)
    (broken,) = [cells(line) for line in ended.filter(has_text="broken").all()]
    assert broken[:5] == ["audit-step", str(STOP), world.task, "broken", "3 of 4"]
    assert broken[-1] == f"{world.victim} (rank 2): rank 2 was killed by signal 9 (SIGKILL)"


def test_data(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/data")
    shown = cells(row(page, "Datasets", "audit-data"))
    assert shown[2:5] == [as_count(SAMPLES), str(-(-SAMPLES // SHARD_SIZE)), "csv"]
    assert shown[-1] == str(world.folder / "data" / "*.csv")


def test_a_preview_shows_the_rows_of_the_files(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/data")
    row(page, "Datasets", "audit-data").click()
    samples = page.get_by_role("region", name="Samples")
    expect(samples).to_be_visible(timeout=120_000)
    lines = [cells(line) for line in samples.locator("tbody tr").all()]
    assert len(lines) == 8
    for sample, number, label in lines:
        assert (sample, label) == (number, str(int(number) % (SAMPLES // 2) % 7))


def test_the_heatmap_tells_the_value_of_each_rank(page: Page, world: AuditWorld) -> None:
    look(page, world, f"/ui/cluster?view=heatmap&runs={world.task}")
    page.get_by_label("Metric").select_option("throughput/samples_per_sec")
    canvas = page.get_by_role("img", name="Heatmap of throughput/samples_per_sec")
    expect(canvas).to_have_attribute("aria-label", re.compile(rf"4 ranks, {STEPS} columns of steps up to {STEPS}$"))
    box = canvas.bounding_box()
    assert box is not None
    middle = statistics.median(rate_of(rank) for rank in RANKS)
    for rank in RANKS:
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + (rank + 0.5) * box["height"] / len(RANKS))
        told = f"step {STEPS} · rank {rank} · {as_value(rate_of(rank))} ({rate_of(rank) / middle:.2f}× median)"
        expect(page.get_by_text(told, exact=True)).to_be_visible()


def test_ages(page: Page, world: AuditWorld) -> None:
    """A page's clock ticks every five seconds at most; a busy machine adds to that."""
    slack = 10.0

    def agrees(words: str, earliest: float, latest: float) -> None:
        shortest, longest = age_of(words)
        now = time.time()
        assert shortest - slack <= now - earliest, words
        assert now - latest <= longest + slack, words

    main = look(page, world, "/ui/alerts")
    lost = main.get_by_role("listitem").filter(has_text=f"worker {world.victim} is lost").first
    agrees(lost.locator("time").inner_text(), world.killed_at, world.killed_at)
    look(page, world, "/ui/tasks")
    agrees(cells(row(page, "Tasks", world.task))[7], world.began_at, world.times("step", 1)[0])
    look(page, world, "/")
    saved = world.times("saved", STEPS)[-1]
    agrees(stat(page, "Age").inner_text(), saved, saved)


def test_checkpoints(page: Page, world: AuditWorld) -> None:
    main = look(page, world, "/ui/checkpoints")
    kept = world.kept_steps()
    expect(stat(page, "On disk")).to_have_text(str(len(kept)))
    expect(stat(page, "Listed size")).to_have_text(as_bytes(sum(map(world.saved_bytes, kept))))
    expect(main).to_contain_text(f"step {STEPS}")
    for step in kept:
        line = page.get_by_role("row").filter(has_text=f"step-{step:012d}")
        shown = cells(line)
        assert shown[:2] == [str(step), str(step // 20)]
        assert shown[2].split("\n") in (["completed"], ["completed", "verified"])
        assert shown[3] == as_bytes(world.saved_bytes(step))
        assert shown[6] == f"{world.task}-0"


def test_tasks_and_the_course_of_one(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/tasks")
    shown = cells(row(page, "Tasks", world.task))
    assert shown[:7] == ["audit", world.task, "completed", "100%", "4", "–", "2"]
    main = look(page, world, f"/ui/tasks/{world.task}")
    expect(fact(page, "Progress")).to_have_text("100.0%")
    expect(fact(page, "Attempt")).to_have_text("2")
    expect(fact(page, "lr")).to_have_text("0.125")
    expect(main).to_contain_text(f"reached step {STOP}")
    expect(main).to_contain_text(f"rank 2 was killed by signal 9 (SIGKILL); all ranks go back to step {RESUMED}")
    expect(main).to_contain_text(f"{STOP - RESUMED} steps")
    expect(main).to_contain_text(f"from step {RESUMED}, reached step {STEPS}")
    expect(main).not_to_contain_text("Not measured")
    course = world.get(f"/api/tasks/{world.task}/course")["shares"]
    parts = [value for name, value in course.items() if name != "wall_s" and value is not None]
    assert sum(parts) == pytest.approx(course["wall_s"], abs=0.01)


def test_how_long_saves_took(page: Page, world: AuditWorld) -> None:
    """Between the first rank that began and the last that was done, by the ranks' own clocks."""
    look(page, world, "/ui/checkpoints")
    saved = {one["step"]: one for one in world.get("/api/checkpoints") if one["task_id"] == world.task}
    for step in world.kept_steps():
        took = world.times("saved", step)[-1] - world.times("saving", step)[0]
        seconds, size = saved[step]["duration_s"], world.saved_bytes(step)
        assert 0 < seconds <= took, f"step {step}"
        shown = cells(page.get_by_role("row").filter(has_text=f"step-{step:012d}"))
        assert shown[4:6] == [as_duration(seconds), as_rate(size / 1e6 / seconds)]


def test_where_the_time_went(page: Page, world: AuditWorld) -> None:
    """Lost is the work that was done again: from the step that was saved last until the kill ended its attempt."""
    look(page, world, f"/ui/tasks/{world.task}")
    shares = world.get(f"/api/tasks/{world.task}/course")["shares"]
    first, again = world.times("step", RESUMED + 1)[0], world.times("step", RESUMED + 1)[-1]
    assert world.killed_at - first <= shares["lost_s"] <= again - world.times("step", RESUMED - 1)[0]
    assert world.times("step", STEPS)[-1] - world.times("step", 1)[0] <= shares["wall_s"]
    assert shares["wall_s"] <= world.ended_at - world.began_at
    legend = page.locator("main li", has_text=re.compile(r"%$"))
    for name, label in {"starting": "Starting", "recovering": "Recovering", "lost": "Lost work"}.items():
        seconds = shares[f"{name}_s"]
        words = f"{as_duration(seconds)} {100 * seconds / shares['wall_s']:.1f}%"
        expect(legend.filter(has_text=label)).to_contain_text(words)


def test_logs(page: Page, world: AuditWorld) -> None:
    look(page, world, f"/ui/logs?task={world.task}&q=audit%20rank")
    for rank in RANKS:
        for words in (f"audit rank {rank} begins after step 0", f"audit rank {rank} begins after step {RESUMED}",
                      f"audit rank {rank} is done"):  # fmt: skip
            expect(page.get_by_text(words, exact=True)).to_have_count(1)


def test_alerts_name_what_happened_and_nothing_else(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/alerts")
    (hang,) = world.alerts("hang")
    assert (hang["task_id"], hang["rank"], hang["step"]) == (world.task, 2, STOP)
    (lost,) = world.alerts("worker_lost")
    assert lost["worker_id"] == world.victim
    (broken,) = world.alerts("barrier_broken")
    assert broken["step"] == STOP
    lines = page.locator("main li")
    expect(lines).to_have_count(len(world.get("/api/alerts")))
    expect(lines.filter(has_text="rank 2 has made no step")).to_have_count(1)


def test_settings(page: Page, world: AuditWorld) -> None:
    look(page, world, "/ui/settings")
    told = world.get("/api/status")
    expect(fact(page, "Coordinator")).to_have_text(f"{world.cluster.endpoints['grpc']} · connected")
    expect(fact(page, "Version")).to_have_text(told["version"])
    expect(fact(page, "Points dropped")).to_have_text("0")
    names = {one["metric"] for run in world.get("/runs") for one in world.series(run["run_id"], points=2)}
    own = {name for name in names if not name.startswith("sys.")}
    assert own == {f"name/{number:05d}" for number in range(WIDE)} | NAMES
    expect(fact(page, "Metrics")).to_contain_text(f"{as_count(len(names))} names")
    expect(fact(page, "Unknown points")).to_have_text("0")
