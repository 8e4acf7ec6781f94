"""Tags, groups, summaries and texts: from a batch to the store, to REST, over a restart; filtered, sorted, archived."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from strata.observatory.store.config import StoreConfig
from strata.observatory.store.supervised import SupervisedStore
from strata.protocol.generated.telemetry_pb2 import Batch
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.test_http import send
from tests.integration.observatory.test_runs import delete, patch
from tests.support.local_http import LOCAL


def a_run(run_id: str, values: list[float], **about: Any) -> Batch:
    batch = Batch(batch_id=f"labels-{run_id}")
    batch.series.add(index=0, run_id=run_id, metric="loss", device=65535)
    for step, value in enumerate(values):
        batch.points.series.append(0)
        batch.points.step.append(step)
        batch.points.value.append(value)
    batch.runs.add(run_id=run_id, status="finished", **about)
    batch.summaries.add(run_id=run_id, name="best", value_json="0.5", event_time_ms=1_700_000_000_000)
    batch.texts.add(
        run_id=run_id, metric="sample", step=3, kind="text", text="once upon a time", event_time_ms=1_700_000_000_000
    )
    return batch


def found(process: ObservatoryProcess, query: str, **params: Any) -> list[str]:
    return [run["run_id"] for run in process.get("/api/runs", filter=query, **params)]


def check(process: ObservatoryProcess) -> None:
    """What is known of both runs, however often it was restarted."""
    [run] = process.get("/api/runs", filter="id:one")
    labels = {name: run[name] for name in ("tags", "group", "job_type", "notes", "archived")}
    assert labels == {"tags": ["new"], "group": "by hand", "job_type": "train", "notes": "said", "archived": False}
    assert process.get("/api/runs/one/summary") == {
        "run_id": "one",
        "metrics": {"loss": {"last": 2.0, "min": 1.0, "max": 3.0}},
        "values": {"best": 0.5},
    }
    assert found(process, "lr > 1e-4 and tag:new and best = 0.5 and loss.min < 2") == ["one"]
    assert found(process, "") == ["one"]
    assert found(process, "archived:yes") == ["two"]
    table = process.get("/api/runs/table", filter="archived:yes or archived:no", sort="loss.max", column="loss.max")
    assert (table["ids"], table["columns"], table["matched"]) == (["two", "one"], {"loss.max": [9.0, 3.0]}, 2)
    assert process.get("/api/runs", limit=1)


@pytest.mark.slow
def test_labels_and_summaries_outlive_a_restart(observatory: ObservatoryProcess) -> None:
    process = observatory
    about = {"tags": ["a", "b"], "group": "sweep", "job_type": "train", "notes": "said", "config_json": '{"lr": 0.001}'}
    send(process, a_run("one", [3.0, 1.0, float("nan"), 2.0], **about))
    send(process, a_run("two", [9.0]))
    [run] = process.get("/api/runs", filter="id:one")
    assert (run["tags"], run["group"]) == (["a", "b"], "sweep")
    wait_until(process.store_ready, "the store's start")
    changes: list[tuple[str, dict[str, Any]]] = [
        ("one", {"tags": ["new", "new"], "group": "by hand"}),
        ("two", {"archived": True}),
        ("two", {"tags": []}),
    ]
    for run_id, body in changes:
        assert patch(process, run_id, body).status_code == 200, body
    check(process)

    def texts() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = process.get("/api/runs/one/texts", metric="sample")
        return rows

    [text] = wait_until(texts, "the text in the store")
    assert (text["step"], text["kind"], text["text"]) == (3, "text", "once upon a time")
    assert process.get("/api/runs/one/texts", metric="other") == []

    process.stop()
    process.start()
    wait_until(lambda: len(process.get("/api/runs")) == 2, "both runs to be read back")
    wait_until(lambda: process.get("/api/runs/one/summary")["metrics"], "the figures")
    check(process)

    for query, place in (("lr >", 5), ("(a", 1)):
        answer = LOCAL.get(f"{process.http}/api/runs", params={"filter": query})
        assert answer.status_code == 400
        assert f"character {place}:" in answer.json()["error"]["message"]
    many = {"run_ids": ["one", "two"], "add_tags": ["both"], "remove_tags": ["new"]}
    assert LOCAL.patch(f"{process.http}/api/runs", json=many).json() == {"changed": 2}
    assert found(process, "tag:both and (archived:yes or archived:no)") == ["two", "one"]
    assert found(process, "tag:new") == []
    for wrong, status in (({"run_ids": ["one", "none"], "archived": True}, 404), ({"run_ids": ["one"]}, 400)):
        assert LOCAL.patch(f"{process.http}/api/runs", json=wrong).status_code == status
    assert found(process, "archived:yes") == ["two"]
    for body in ({"tags": ["x" * 65]}, {"tags": ["a\nb"]}, {"group": "x" * 256}):
        assert patch(process, "one", body).status_code == 400, body
    assert delete(process, "one").json()["rows_removed"]
    assert LOCAL.get(f"{process.http}/api/runs/one/summary").status_code == 404
    assert LOCAL.get(f"{process.http}/api/runs/one/texts").status_code == 404


async def test_a_rollup_of_an_earlier_release_learns_its_extremes(tmp_path: Path) -> None:
    """Version 5 kept no lowest and highest values: they are found for rows that were there, and counted on."""
    config = StoreConfig(path=str(tmp_path / "metrics"), retention_days=None)
    insert = "INSERT INTO {db}.metric_points (run_id, metric, step, value) VALUES "
    figures = """SELECT sum(num_points) AS points, min(min_value) AS low, max(max_value) AS high,
        argMaxMerge(last_value) AS newest FROM {db}.series_rollup WHERE run_id = 'old'"""
    old = SupervisedStore(config)
    await old.start()
    await asyncio.wait_for(old.wait_ready(), 60)
    for view in ("series_rollup_mv", "rollup_missed_mv"):
        await old.command(f"DROP VIEW {{db}}.{view}")
    for column in ("min_value", "max_value"):
        await old.command(f"ALTER TABLE {{db}}.series_rollup DROP COLUMN {column}")
    await old.command("ALTER TABLE {db}.schema_version DELETE WHERE version > 0 SETTINGS mutations_sync = 2")
    await old.command(f"{insert} ('old', 'loss', 1, 5), ('old', 'loss', 2, nan), ('old', 'loss', 3, 4)")
    await old.stop()
    store = SupervisedStore(config)
    await store.start()
    await asyncio.wait_for(store.wait_ready(), 60)
    [row] = (await store.query(figures)).to_rows()
    assert row == {"points": 3, "low": 4.0, "high": 5.0, "newest": 4.0}
    await store.command(f"{insert} ('old', 'loss', 4, -1)")
    [row] = (await store.query(figures)).to_rows()
    assert row == {"points": 4, "low": -1.0, "high": 5.0, "newest": -1.0}
    await store.stop()
