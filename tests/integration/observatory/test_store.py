"""The store process with the real engine: schema, retries, death, ownership."""

import asyncio
import math
import os
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from strata.clock import SystemClock
from strata.errors import Internal, StoreUnavailable
from strata.observatory.background.setaside import SetAside
from strata.observatory.batch.columns import to_columns
from strata.observatory.history.loader import _curves_of, read_curves
from strata.observatory.ingest.points import from_json
from strata.observatory.live.cache import NUM_BUCKETS
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.inserts import Inserts
from strata.observatory.store.rows import PointRows, tables_of
from strata.observatory.store.sql import RUNS, curves, raw_points
from strata.observatory.store.supervised import SupervisedStore
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import SeriesKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = ("run_id", "metric", "host", "rank", "device")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SupervisedStore]:
    config = StoreConfig(path=str(tmp_path_factory.mktemp("store") / "metrics"), retention_days=3650)
    store = SupervisedStore(config)
    await store.start()
    await asyncio.wait_for(store.wait_ready(), 60)
    yield store
    await store.stop()


async def insert(store: SupervisedStore, message: Batch, token: str, *, repeated: bool = False) -> None:
    columns = to_columns(message)
    inserts = Inserts(store, SetAside(SystemClock(), lambda _: None), Path(os.devnull))
    for table, rows in tables_of([columns], PointRows([columns])).items():
        await inserts.send(table, rows, f"{token}:{table}", stubborn=False, repeated=repeated)


async def counts(store: SupervisedStore, run_id: str) -> tuple[object, object]:
    """Rows of a run, and how many the rollup has counted."""
    rows = await store.query("SELECT count() AS n FROM {db}.metric_points WHERE run_id = {run:String}", {"run": run_id})
    counted = await store.query(
        "SELECT sum(num_points) AS n FROM {db}.series_rollup WHERE run_id = {run:String}", {"run": run_id}
    )
    return rows["n"][0], counted["n"][0]


def points(run_id: str, values: list[float | None], start_ms: int = 1_794_000_000_000) -> Batch:
    body = {
        "points": [
            {"metric": "loss", "step": step, "value": value, "event_time": (start_ms + step) / 1000, "unit": "nats"}
            for step, value in enumerate(values)
        ]
    }
    return from_json(run_id, body, 1)


async def ask_often(store: SupervisedStore) -> None:
    for _ in range(1_000):
        await store.query("SELECT 1")


async def one(store: SupervisedStore, sql: str) -> object:
    (value,) = (await store.query(sql)).to_rows()[0].values()
    return value


async def test_a_repeated_insert_changes_neither_the_table_nor_the_rollup(store: SupervisedStore) -> None:
    """Over two months, so that one batch makes two parts."""
    message = points("retry", [1.0, math.nan, 3.0], 1_793_491_199_999)
    for repeated in (False, True, True):
        await insert(store, message, "t1", repeated=repeated)
    assert await counts(store, "retry") == (3, 3)
    assert await one(store, "SELECT sum(num_bad) FROM {db}.series_rollup WHERE run_id = 'retry'") == 1
    assert await one(store, "SELECT uniqExact(toYYYYMM(event_time)) FROM {db}.metric_points WHERE run_id='retry'") == 2


async def test_equal_inserts_of_a_foreign_writer_are_all_kept(store: SupervisedStore) -> None:
    """Some program that samples a value now and then names neither step nor time. Its second insert has the first
    one's content, and is a second point all the same; so is one that names the same time again."""
    for _ in range(2):
        await store.command("INSERT INTO {db}.metric_points (run_id, metric, value) VALUES ('foreign', 'fan', 1)")
        await store.command(
            "INSERT INTO {db}.metric_points (event_time, run_id, metric, value) "
            "VALUES ('2027-01-15 08:00:00', 'foreign', 'fan', 1)"
        )
    assert await counts(store, "foreign") == (4, 4)


async def test_points_that_a_crash_kept_from_the_rollup_are_counted_by_the_repeat(store: SupervisedStore) -> None:
    message = points("uncounted", [1.0, 2.0, 3.0])
    await insert(store, message, "t5")
    await store.command("ALTER TABLE {db}.series_rollup DELETE WHERE run_id = 'uncounted' SETTINGS mutations_sync = 2")
    for _ in range(2):
        await insert(store, message, "t5", repeated=True)
        assert await counts(store, "uncounted") == (3, 3)


async def test_a_table_of_an_earlier_release_is_brought_up_in_place(tmp_path: Path) -> None:
    """Up to version 3 the engine knew every insert by its content."""
    config = StoreConfig(path=str(tmp_path / "metrics"), retention_days=None)
    foreign = "INSERT INTO {db}.metric_points (run_id, metric, value) VALUES ('foreign', 'fan', 1)"
    old = SupervisedStore(config)
    await old.start()
    await asyncio.wait_for(old.wait_ready(), 60)
    for table in ("metric_points", "series_rollup"):
        await old.command(f"ALTER TABLE {{db}}.{table} MODIFY SETTING non_replicated_deduplication_window = 1000")
    await old.command("ALTER TABLE {db}.schema_version DELETE WHERE version > 3 SETTINGS mutations_sync = 2")
    for _ in range(2):
        await old.command(foreign)
    assert await counts(old, "foreign") == (1, 1)
    await old.stop()
    store = SupervisedStore(config)
    await store.start()
    await asyncio.wait_for(store.wait_ready(), 60)
    for _ in range(2):
        await store.command(foreign)
    assert await counts(store, "foreign") == (3, 3)
    await store.stop()


async def test_samples_of_the_host_are_no_steps_of_a_run(store: SupervisedStore) -> None:
    """Each has a number of its own; a run that logs nothing else is at no step that anybody knows."""
    for run_id, metrics in {"idle": ["sys.cpu_percent"], "busy": ["sys.cpu_percent", "loss"]}.items():
        body = {"points": [{"metric": name, "step": 9 if name == "loss" else 500, "value": 1} for name in metrics]}
        await insert(store, from_json(run_id, body, 1), f"t6-{run_id}")
    steps = {row["run_id"]: row["top_step"] for row in (await store.query(RUNS)).to_rows()}
    assert (steps["idle"], steps["busy"]) == (None, 9)


async def test_retention_drops_old_points_and_never_those_of_later_years(store: SupervisedStore) -> None:
    """A DateTime ends in February 2106; ten years before that the sum of time and retention would pass its end."""
    years = {"1971": 31_536_000, "2010": 1_262_304_000, "2026": 1_794_000_000, "2098": 4_039_372_800}
    years |= {"2106": 4_296_000_000, "2150": 5_680_281_600, "2199": 7_226_582_400}
    for year, seconds in years.items():
        await insert(store, points(f"year-{year}", [1.0, 2.0], seconds * 1000), f"years-{year}")
    await store.command("OPTIMIZE TABLE {db}.metric_points FINAL")
    left = await store.query(
        "SELECT run_id, count() FROM {db}.metric_points WHERE run_id LIKE 'year-%' GROUP BY run_id"
    )
    assert {row["run_id"]: row["count()"] for row in left.to_rows()} == {
        f"year-{year}": 2 for year in ("2026", "2098", "2106", "2150", "2199")
    }


async def test_metric_points_is_the_public_table(store: SupervisedStore) -> None:
    rows = (await store.query("DESCRIBE TABLE {db}.metric_points")).to_rows()
    assert [(row["name"], row["type"]) for row in rows] == [
        ("event_time", "DateTime64(3)"),
        ("run_id", "LowCardinality(String)"),
        ("host", "LowCardinality(String)"),
        ("rank", "UInt32"),
        ("device", "UInt16"),
        ("step", "UInt64"),
        ("metric", "LowCardinality(String)"),
        ("value", "Float64"),
        ("unit", "LowCardinality(String)"),
        ("tags_json", "String"),
    ]
    key = await one(store, "SELECT sorting_key FROM system.tables WHERE name = 'metric_points'")
    assert key == "run_id, metric, host, rank, device, step, event_time"


async def test_a_long_series_is_read_in_bounded_buckets_with_exact_extremes(store: SupervisedStore) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=20_000)
    values[777] = 99.0
    listed: list[float | None] = values.tolist()
    listed[5_000:5_010] = [None] * 10
    await insert(store, points("long", listed), "t2")
    found = await read_curves(store, {"runs": ["long"]}, NUM_BUCKETS)
    assert len(found) == 1
    curve = found[0]
    assert len(curve.buckets) <= NUM_BUCKETS
    assert curve.unit == "nats"
    assert curve.stats.total_points == 20_000
    assert curve.stats.nan_count == 10
    assert curve.buckets["vmax"].max() == 99.0
    assert curve.buckets["vmin"].min() == np.nanmin(np.array(listed, float))
    assert curve.stats.last_value == values[-1]
    window = await read_curves(store, {"runs": ["long"], "from_step": 100, "to_step": 199}, 1_000)
    assert window[0].stats.total_points == 100
    assert window[0].buckets["smin"].tolist() == list(range(100, 200))


async def test_points_that_the_rollup_has_not_counted_are_read_with_the_others(store: SupervisedStore) -> None:
    await insert(store, points("behind", [float(step) for step in range(5_000)]), "behind")
    change = "UPDATE num_points = 7 WHERE run_id = 'behind' SETTINGS mutations_sync = 1"
    await store.command(f"ALTER TABLE {{db}}.series_rollup {change}")
    assert await counts(store, "behind") == (5_000, 7)
    (curve,) = await read_curves(store, {"runs": ["behind"]}, 10)
    assert curve.buckets["n"].tolist() == [500] * 10
    assert curve.buckets["vmax"].tolist() == [499.0 + 500 * number for number in range(10)]


@pytest.mark.parametrize("num_series", [1, 30])
async def test_all_roads_make_the_buckets_of_the_raw_points(store: SupervisedStore, num_series: int) -> None:
    """Series of several hosts, ranks and devices whose steps repeat and go back, with NaN and Inf, over many parts of
    the table, some written by somebody else under a name that is no UTF-8."""
    rng, run_id = np.random.default_rng(7), f"roads-{num_series}"
    for part in range(6):
        body = [
            {
                "metric": f"m{number % num_series % 3}",
                "host": f"host-{number % num_series % 2}",
                "rank": number % num_series % 5,
                "device": number % num_series % 2,
                "step": int(rng.integers(0, 400)),
                "value": [float(rng.normal()), float("nan"), float("inf")][
                    int(rng.integers(0, 20) == 0) * (1 + number % 2)
                ],
                "event_time": 1_794_000_000 + (part * 2_000 + number) * 7_919 % 12_007,
            }
            for number in range(2_000)
        ]
        await insert(store, from_json(run_id, {"points": body}, 1), f"{run_id}-{part}")
    if num_series > 1:
        foreign = f"SELECT '{run_id}', concat('bad', unhex('ff')), number, number FROM numbers(500)"  # noqa: S608 - constants
        await store.command(f"INSERT INTO {{db}}.metric_points (run_id, metric, step, value) {foreign}")
    where, buckets = {"runs": [run_id], "from_step": 3, "to_step": 390}, 37
    raw = (await store.query(*raw_points(where, 100_000))).to_rows()
    by_key: dict[SeriesKey, list[dict[str, Any]]] = defaultdict(list)
    for row in raw:
        by_key[SeriesKey(*(row[name] for name in KEY))].append(row)
    expected = {key: plain_buckets(rows, buckets) for key, rows in by_key.items()}
    found = await read_curves(store, where, buckets)
    assert {curve.key: curve.buckets.tolist() for curve in found} == expected
    by_engine = _curves_of(await store.query(*curves(where, buckets)))
    assert {curve.key: curve.buckets.tolist() for curve in by_engine} == expected


def plain_buckets(rows: list[dict[str, Any]], buckets: int) -> list[tuple[float, ...]]:
    """What each bucket must hold, the slow way."""
    rows = sorted(rows, key=lambda row: (row["step"], row["ms"]))
    width = max(1, -(-len(rows) // buckets))
    made: list[tuple[float, ...]] = []
    for start in range(0, len(rows), width):
        mine = rows[start : start + width]
        finite = [row for row in mine if math.isfinite(row["value"])]
        none = {"value": math.inf, "step": mine[0]["step"], "ms": min(row["ms"] for row in mine)}
        low = min(finite, key=lambda row: row["value"], default=none)
        high = max(finite, key=lambda row: row["value"], default={**none, "value": -math.inf})
        extremes = (low["value"], high["value"], low["step"], high["step"], low["ms"], high["ms"])
        made.append((*extremes, len(mine), len(mine) - len(finite)))
    return made


async def test_logs_events_checkpoints_and_runs_have_their_tables(store: SupervisedStore) -> None:
    message = Batch(batch_id="all")
    message.logs.add(event_time_ms=1_794_000_000_000, level="info", message="hello", task_id="t1")
    message.events.add(
        event_time_ms=1_794_000_000_000, id="alert_1", kind="bad_loss", severity="critical", message="m", step=4
    )
    message.checkpoints.add(
        event_time_ms=1_794_000_000_000, id="c1", run_id="t1", step=5, size_bytes=10, status="completed"
    )
    message.runs.add(run_id="t1", name="n", config_json="{}", status="running", updated_at_ms=5, started_at_ms=5)
    await insert(store, message, "t3")
    assert await one(store, "SELECT message FROM {db}.logs WHERE task_id = 't1'") == "hello"
    assert await one(store, "SELECT (step, rank) FROM {db}.events WHERE id = 'alert_1'") == [4, None]
    assert await one(store, "SELECT duration_s FROM {db}.checkpoints WHERE id = 'c1'") is None
    assert await one(store, "SELECT name FROM {db}.runs WHERE run_id = 't1'") == "n"


async def test_a_wrong_query_is_an_error_and_not_the_end(store: SupervisedStore) -> None:
    with pytest.raises(Internal, match="nonsense"):
        await store.query("SELECT nonsense")
    assert await one(store, "SELECT 1") == 1


async def test_a_killed_engine_comes_back_and_a_repeat_changes_nothing(store: SupervisedStore) -> None:
    """Takes about 3 s: the engine's process starts again."""
    await insert(store, points("killed", [1.0, 2.0]), "t4")
    assert store.pid is not None
    os.kill(store.pid, signal.SIGKILL)
    with pytest.raises(StoreUnavailable):
        await ask_often(store)
    await asyncio.wait_for(store.wait_ready(), 60)
    await insert(store, points("killed", [1.0, 2.0]), "t4", repeated=True)
    assert await counts(store, "killed") == (2, 2)
    assert store.restarts >= 1


@pytest.mark.slow
async def test_an_engine_that_stands_still_is_started_anew(store: SupervisedStore) -> None:
    """Takes 20 s, which is how long it is waited for."""
    await insert(store, points("stopped", [1.0, 2.0]), "t5")
    stopped = store.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    with pytest.raises(StoreUnavailable, match="went away"):
        await asyncio.wait_for(store.query("SELECT 1"), 60)
    await asyncio.wait_for(store.wait_ready(), 60)
    assert store.pid != stopped
    assert await counts(store, "stopped") == (2, 2)


async def test_a_second_owner_waits_and_says_who_has_the_folder(store: SupervisedStore) -> None:
    second = SupervisedStore(store._config)
    await second.start()
    async with asyncio.timeout(60):
        while second.problem == "starting":  # noqa: ASYNC110 - the supervisor reports by state
            await asyncio.sleep(0.02)
    await second.stop()
    assert f"pid {store.pid}" in (second.problem or "")


async def test_the_store_leaves_no_process_behind(tmp_path: Path) -> None:
    """Takes about 2 s: one more engine."""
    store = SupervisedStore(StoreConfig(path=str(tmp_path / "metrics")))
    await store.start()
    await asyncio.wait_for(store.wait_ready(), 60)
    pid = store.pid
    await store.stop()
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
