"""The snapshot stays inside its budget, and says so when that costs points; a sparse one names many series only."""

import json

import numpy as np
import pytest

from strata.clock import ManualClock
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.outline import outline_of
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.tally import Tally
from strata.observatory.records.encoding import encode
from strata.observatory.stream.ring import Filter
from strata.types.metrics import SeriesKey


def build(
    num_runs: int, num_series: int, num_points: int, budget: int, *, num_active: int = 1, **limits: int
) -> SnapshotBuilder:
    clock = ManualClock()
    series, cache, runs = SeriesTable(), SeriesCache(max_series=num_runs * num_series), RunBook(clock)
    now = round(clock.wall() * 1000)
    for run in range(num_runs):
        last = now if run < num_active else now - 3_600_000
        for place in range(num_series):
            number = series.intern(SeriesKey(f"r{run}", f"m{place}"))
            steps = np.arange(num_points)
            cache.apply(
                np.full(num_points, number),
                steps,
                last - num_points + steps,
                np.random.default_rng(run).normal(size=num_points),
            )
        runs.from_store(
            [{"run_id": f"r{run}", "first_ms": last - num_points, "last_ms": last, "top_step": num_points - 1,
              "points": num_points * num_series, "series": num_series}]
        )  # fmt: skip
    return SnapshotBuilder(series, cache, runs, budget_bytes=budget, **limits)


def test_everything_is_sent_while_it_fits() -> None:
    body = json.loads(build(2, 2, 100, 1 << 20).build(Filter(), "e1"))
    assert not body["reduced"]
    assert body["epoch"] == "e1"
    assert [len(one["steps"]) for one in body["series"]] == [100] * 4
    assert {run["run_id"]: run["is_active"] for run in body["runs"]} == {"r0": True, "r1": False}


def test_far_runs_get_fewer_points_and_the_budget_holds() -> None:
    builder = build(5, 4, 1_500, 300_000)
    raw = builder.build(Filter(), "e1")
    body = json.loads(raw)
    assert body["reduced"]
    assert len(raw) < 400_000
    sizes = {one["run_id"]: len(one["steps"]) for one in body["series"]}
    assert sizes["r0"] > 3 * sizes["r4"] >= 16
    assert builder.build(Filter(), "e1") == raw


def test_a_filter_leaves_other_runs_out() -> None:
    body = json.loads(build(3, 1, 10, 1 << 20).build(Filter(runs=frozenset({"r1"})), "e"))
    assert [run["run_id"] for run in body["runs"]] == ["r1"]
    assert {one["run_id"] for one in body["series"]} == {"r1"}


def test_a_sparse_stream_gets_an_outline_of_many_series() -> None:
    builder = build(2, 10, 1_000, 1 << 20)
    raw = builder.build(Filter(sparse=True), "e")
    body = json.loads(raw)
    assert body["series"] == []
    assert not body["reduced"]
    outline = body["outline"]
    assert sorted(outline["runs"]) == ["r0", "r1"]
    named = {
        (outline["runs"][run], outline["metrics"][metric])
        for run, metric in zip(outline["run"], outline["metric"], strict=True)
    }
    assert named == {(f"r{run}", f"m{place}") for run in range(2) for place in range(10)}
    whole = {one["id"]: one for one in json.loads(builder.build(Filter(), "e"))["series"]}
    for place, number in enumerate(outline["id"]):
        one = whole[number]
        assert outline["metrics"][outline["metric"][place]] == one["metric"]
        assert [outline[name][place] for name in ("total_points", "nan_count", "rank", "device")] == [
            one[name] for name in ("total_points", "nan_count", "rank", "device")
        ]
        assert [outline["step"][place], outline["time"][place], outline["value"][place]] == [
            one["steps"][-1],
            one["times"][-1],
            one["values"][-1],
        ]
    assert len(raw) < 5_000


def test_an_outline_has_as_many_runs_as_fit_and_names_the_others_also_running_ones() -> None:
    body = json.loads(build(5, 10, 1_000, 1 << 20, num_active=3, max_outline=25).build(Filter(sparse=True), "e"))
    running = {run["run_id"] for run in body["runs"] if run["is_active"]}
    assert running == {"r0", "r1", "r2"}
    assert (len(body["runs"]), len(body["outline"]["id"])) == (5, 20)
    assert set(body["outline"]["runs"]) < running, "running ones come first"
    assert sorted([*body["outline"]["runs"], *body["omitted_runs"]]) == [f"r{run}" for run in range(5)]


@pytest.mark.parametrize("num_points", [10, 1_000])
def test_a_sparse_stream_is_told_of_the_newest_runs_and_that_there_are_more(num_points: int) -> None:
    builder = build(5, 10, num_points, 1 << 20, num_active=2, max_runs=3)
    sparse, plain = (json.loads(builder.build(Filter(sparse=sparse), "e")) for sparse in (True, False))
    assert (len(sparse["runs"]), sparse["more_runs"]) == (3, True)
    assert [run["is_active"] for run in sparse["runs"]] == [True, True, False]
    assert (len(plain["runs"]), plain["more_runs"]) == (5, False)
    told = {run["run_id"] for run in sparse["runs"]}
    assert (set(sparse["outline"]["runs"]), sparse["series"], sparse["omitted_runs"]) == (told, [], [])
    assert not json.loads(build(3, 10, num_points, 1 << 20, max_runs=3).build(Filter(sparse=True), "e"))["more_runs"]


def test_the_first_run_is_outlined_whatever_its_size() -> None:
    body = json.loads(build(2, 10, 1_000, 1 << 20, max_outline=5).build(Filter(sparse=True), "e"))
    assert (body["outline"]["runs"], body["omitted_runs"]) == (["r0"], ["r1"])


def test_a_sparse_stream_gets_few_points_at_once() -> None:
    builder = build(2, 2, 100, 1 << 20)
    assert builder.build(Filter(sparse=True), "e") == builder.build(Filter(), "e")


def test_an_outline_names_hosts_units_and_devices_also_of_a_unit_that_came_late() -> None:
    series, late = SeriesTable(), SeriesKey("r", "m", "h1", 3, 7)
    units = ((SeriesKey("r", "m"), ""), (late, ""), (late, "ms"), (late, "ignored"))
    numbers = sorted({series.intern(key, unit) for key, unit in units})
    outline = outline_of(np.array(numbers), series, Tally())
    assert ([outline.hosts[place] for place in outline.host], list(outline.rank)) == (["", "h1"], [0, 3])
    assert ([outline.units[place] for place in outline.unit], list(outline.device)) == (["", "ms"], [65535, 7])
    assert json.loads(encode(build(1, 1, 10, 1 << 20).outline(["nobody"])))["id"] == []
