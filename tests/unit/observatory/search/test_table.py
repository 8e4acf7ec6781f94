"""Which runs a query finds: labels, config, summaries and metrics of a real live view."""

import json
from typing import Any

import numpy as np
import pytest

from strata.clock import ManualClock
from strata.errors import InvalidArgument
from strata.observatory.batch.columns import to_columns
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.view import LiveView
from strata.observatory.search.table import RunSearch
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch


def a_view() -> LiveView:
    clock = ManualClock(wall=1_700_000_000.0)
    series, cache, runs = SeriesTable(), SeriesCache(max_series=64), RunBook(clock)
    snapshots = SnapshotBuilder(series, cache, runs)
    return LiveView(series, cache, runs, Broadcaster(lambda _: b"", clock), snapshots)


def tell(live: LiveView, run_id: str, *, at: int = 0, loss: tuple[float, ...] = (), **about: Any) -> None:
    """A run that began at second `at`, as its script would tell of it; `said` are values of its summary."""
    start = 1_600_000_000_000 + at * 1000
    batch = Batch(batch_id=f"{run_id}-{at}")
    said, config = about.pop("said", {}), about.pop("config", {})
    about |= {"config_json": json.dumps(config), "started_at_ms": start, "updated_at_ms": start}
    batch.runs.add(run_id=run_id, status="finished", **about)
    for name, value in said.items():
        batch.summaries.add(run_id=run_id, name=name, value_json=json.dumps(value), event_time_ms=start)
    for rank in (0, 1):
        batch.series.add(index=rank, run_id=run_id, metric="train/loss", rank=rank, device=65535)
        for step, value in enumerate(loss):
            batch.points.series.append(rank)
            batch.points.step.append(step)
            batch.points.event_time_ms.append(start + step)
            batch.points.value.append(value + rank)
    live.take(to_columns(batch), 1)
    live.tick()


@pytest.fixture
def live() -> LiveView:
    live = a_view()
    tell(live, "a", at=1, loss=(3.0, 1.0, 2.0), tags=["ablation", "big"], group="x", project="vision",
         config={"lr": 1e-3, "model": {"width": 64, "norm": "LayerNorm"}, "amp": True}, said={"best": 0.9})  # fmt: skip
    tell(live, "b", at=2, loss=(9.0, 8.0), tags=["base"], group="x", config={"lr": 1e-5}, said={"best": 0.5})
    tell(live, "c", at=3, loss=(np.nan,), name="third", notes="Diverged at once", config={"lr": "cosine"})
    tell(live, "d", at=4, job_type="eval", config={"lr": 2**70})
    live.runs.edit("b", {"archived": ""})
    return live


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "dcba"),
        ("lr > 1e-4 and tag:ablation", "a"),
        ("lr > 1e-4", "da"),
        ("lr < 1", "ba"),
        ("lr = cosine", "c"),
        ("config.lr >= 0.001", "da"),
        ("group:x", "ba"),
        ("group != x", ""),
        ("not group:x", "dc"),
        ("tag:b*", "ba"),
        ("tag != base", "a"),
        ("model.width = 64", "a"),
        ("model/width > 63", "a"),
        ("config.model.norm ~ layer", "a"),
        ("amp = true", "a"),
        ("summary.best > 0.6", "a"),
        ("best <= 0.5 or job_type:eval", "db"),
        ("train/loss.min < 2", "a"),
        ("train/loss < 5", "a"),
        ("train/loss.max > 3.5", "ba"),
        ("diverged", "c"),
        ("THIRD", "c"),
        ("state:finished project:vision", "a"),
        ("name ~ thi", "c"),
        ("id:d", "d"),
        ("nothing = 1", ""),
        ("started > 1600000002", "dc"),
        ("lr > b", "c"),
    ],
)
def test_what_a_query_finds(live: LiveView, query: str, found: str) -> None:
    assert "".join(info.run_id for info in RunSearch(live).find(query, "", descending=True)) == found


@pytest.mark.parametrize(
    ("sort", "down", "order"),
    [
        ("train/loss.min", False, "abdc"),
        ("train/loss.min", True, "badc"),
        ("train/loss", True, "badc"),
        ("lr", False, "badc"),
        ("best", True, "abdc"),
        ("name", False, "abdc"),
        ("started", False, "abcd"),
        ("no such thing", True, "dcba"),
    ],
)
def test_sorting_puts_runs_without_a_value_last_both_ways(live: LiveView, sort: str, down: bool, order: str) -> None:
    assert "".join(info.run_id for info in RunSearch(live).find("", sort, descending=down)) == order


def test_the_table_has_the_columns_that_were_asked_for(live: LiveView) -> None:
    table = RunSearch(live).table("", "lr", ["lr", "train/loss.min", "tag", "summary.best"], descending=False, limit=2)
    assert (table.total, table.matched, table.ids) == (4, 4, ["b", "a"])
    assert table.columns == {
        "lr": [1e-5, 1e-3],
        "train/loss.min": [8.0, 1.0],
        "tag": [["base"], ["ablation", "big"]],
        "summary.best": [0.5, 0.9],
    }
    assert table.names == [
        "config.amp",
        "config.lr",
        "config.model.norm",
        "config.model.width",
        "summary.best",
        "train/loss.last",
        "train/loss.min",
        "train/loss.max",
    ]
    with pytest.raises(InvalidArgument):
        RunSearch(live).table("", "", ["lr"] * 51, descending=True, limit=1)


def test_archived_runs_are_left_out_unless_asked_for(live: LiveView) -> None:
    live.runs.edit("a", {"archived": "1"})
    search = RunSearch(live)

    def found(query: str) -> str:
        return "".join(info.run_id for info in search.find(query, "", descending=True))

    assert found("") == "dcb"
    assert found("archived:yes") == "a"
    assert found("archived:yes or archived:no") == "dcba"


def test_figures_of_a_run_are_of_all_its_ranks_and_of_finite_values(live: LiveView) -> None:
    figures = live.summaries.metrics("a")["train/loss"]
    assert (figures.last, figures.min, figures.max) == (2.5, 1.0, 4.0)
    broken = live.summaries.metrics("c")["train/loss"]
    assert (broken.last, broken.min, broken.max) == (None, None, None)
    assert live.summaries.metrics("d") == {}
    assert live.summaries.said("a") == {"best": 0.9}


def test_the_newest_word_of_a_script_counts_and_none_takes_it_back(live: LiveView) -> None:
    live.summaries.take("a", "best", "0.95", 1_700_000_000_000)
    live.summaries.take("a", "best", "0.1", 1_600_000_000_000)
    assert live.summaries.said("a") == {"best": 0.95}
    live.summaries.take("a", "best", "", 1_700_000_000_001)
    assert live.summaries.said("a") == {}
    live.summaries.take("a", "odd", "{not json", 1)
    assert live.summaries.said("a") == {"odd": "{not json"}
    live.drop(["a"])
    assert live.summaries.said("a") == {}


def test_a_rank_that_moved_counts_where_it_is_now() -> None:
    live = a_view()
    for host, steps in (("one", (0, 1)), ("two", (2, 3))):
        batch = Batch(batch_id=host)
        batch.series.add(index=0, run_id="r", metric="loss", host=host, device=65535)
        for step in steps:
            batch.points.series.append(0)
            batch.points.step.append(step)
            batch.points.event_time_ms.append(1_600_000_000_000 + step)
            batch.points.value.append(float(step))
        live.take(to_columns(batch), 1)
    live.tick()
    figures = live.summaries.metrics("r")["loss"]
    assert (figures.last, figures.min, figures.max) == (3.0, 0.0, 3.0)
    assert live.summaries.column("loss", "last") == {"r": 3.0}
    assert live.summaries.column("loss", "min") == {"r": 0.0}
