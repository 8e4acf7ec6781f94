"""Runs of other trackers: W&B's offline file as wandb 0.31 wrote it (beside this file), MLflow's folder and database,
an export of Neptune. tests/integration/cli/test_trackers.py makes them with the real libraries.
"""

import math
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.errors import DataError, InvalidArgument
from strata.observatory.batch.columns import to_columns
from strata.observatory.batch.door import check_extras
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.find import find_runs
from strata.observatory.transfer.runs import ImportedRun, run_batches
from strata.protocol.generated.telemetry_pb2 import Batch

WANDB = Path(__file__).with_name("run-abc12345.wandb")


def runs_in(path: Path) -> list[ImportedRun]:
    return list(find_runs(path, 0, _refuse))


def _refuse(file: Path, error: DataError) -> None:
    raise AssertionError(f"{file}: {error}")


def points_of(run: ImportedRun) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for part in run.parts.values():
        for point in part():
            found.setdefault(point.metric, []).append((point.step, point.value))
    return found


def test_a_run_of_wandb_with_all_it_says() -> None:
    (run,) = runs_in(WANDB)
    assert (run.run_id, run.project, run.name, run.group) == ("abc12345", "stories", "calm-sea", "sweep-1")
    assert (run.job_type, run.notes, run.tags) == ("train", "a note", ("first", "ablation"))
    assert run.config == {"lr": 0.001, "model": {"layers": [2, 4], "name": "gpt"}, "late": True}
    assert (run.summary["best"], run.summary["loss"]) == (0.5, 0.02)
    assert not any(name.startswith("_") for name in run.summary)
    assert (run.status, run.started_ms) == ("finished", 1_794_900_644_456)
    points = points_of(run)
    assert sorted(points) == ["big", "epoch", "flag", "loss", "nested.a", "val/acc"]
    assert [value for _, value in points["big"]] == [2**40 + step for step in range(50)]
    assert points["nested.a"] == [(step, step * 2.5) for step in range(50)]
    assert points["flag"] == [(step, float(step % 2 == 0)) for step in range(50)]
    assert math.isnan(points["loss"][7][1])
    assert [item for item in points["loss"] if item[0] != 7] == [(s, 1 / (s + 1)) for s in range(50) if s != 7]
    assert points["val/acc"] == [(epoch, epoch / 5) for epoch in range(5)]  # at its own step metric
    assert run.unread == {"values that are no numbers": 1}


def test_batches_are_the_same_every_time_and_fit() -> None:
    first, second = ([*run_batches(run, {})] for run in runs_in(WANDB) * 2)
    assert [batch.batch_id for batch in first] == [batch.batch_id for batch in second]
    assert sum(len(to_columns(batch).values) for batch in first if batch.series) == 210
    assert first[0].runs[0].name == "calm-sea"
    assert {item.name for item in first[0].summaries} >= {"best", "loss"}


def test_a_wandb_file_that_is_cut_or_damaged(tmp_path: Path) -> None:
    whole = WANDB.read_bytes()
    cut = tmp_path / "run-cut.wandb"
    cut.write_bytes(whole[:-900])
    (run,) = runs_in(cut)
    assert 40 < len(points_of(run)["loss"]) <= 50
    damaged = tmp_path / "run-damaged.wandb"
    damaged.write_bytes(whole[:9_000] + b"\xff" * 4 + whole[9_004:])
    (run,) = runs_in(damaged)
    assert run.unread["pieces with a wrong checksum"] == 1
    assert len(points_of(run)["big"]) == 49
    other = tmp_path / "wandb" / "run-other.wandb"
    other.parent.mkdir()
    other.write_bytes(b"something else")
    (tmp_path / "wandb" / "run-good.wandb").write_bytes(whole)
    broken: list[str] = []
    found = list(find_runs(tmp_path / "wandb", 0, lambda file, _: broken.append(file.name)))
    assert ([run.run_id for run in found], broken) == (["abc12345"], ["run-other.wandb"])


def _folder_store(root: Path) -> None:
    run = root / "22" / "77aa"
    for part in ("metrics/val", "params", "tags"):
        (run / part).mkdir(parents=True)
    (root / "22" / "meta.yaml").write_text("experiment_id: '22'\nlifecycle_stage: active\nname: stories\n")
    (run / "meta.yaml").write_text(
        "end_time: 1794900666320\nlifecycle_stage: active\nrun_id: 77aa\nrun_name: first\nstart_time: 1794900665974\n"
        "status: 3\ntags: []\n"
    )
    (run / "metrics" / "loss").write_text("1794900666067 0.5 0\n1794900666068 nan 1\nhalf a li\n")
    (run / "metrics" / "val" / "acc").write_text("1794900666067 0.25 10\n")
    (run / "params" / "lr").write_text("0.001")
    (run / "params" / "kind").write_text("adam")
    (run / "tags" / "mlflow.note.content").write_text("a note")
    (run / "tags" / "team").write_text("vision")
    gone = root / "22" / "88bb"
    (gone / "metrics").mkdir(parents=True)
    (gone / "meta.yaml").write_text("lifecycle_stage: deleted\nrun_id: 88bb\n")


def _database(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.executescript(
            """
            CREATE TABLE experiments (experiment_id INTEGER, name TEXT);
            CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time INTEGER, end_time INTEGER,
                               experiment_id INTEGER, lifecycle_stage TEXT);
            CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan BOOLEAN);
            CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
            CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
            INSERT INTO experiments VALUES (22, 'stories');
            INSERT INTO runs VALUES ('77aa', 'first', 'FINISHED', 1794900665974, 1794900666320, 22, 'active');
            INSERT INTO runs VALUES ('88bb', 'gone', 'FINISHED', 1, 2, 22, 'deleted');
            INSERT INTO metrics VALUES ('loss', 0.5, 1794900666067, '77aa', 0, 0);
            INSERT INTO metrics VALUES ('loss', 0, 1794900666068, '77aa', 1, 1);
            INSERT INTO metrics VALUES ('val/acc', 0.25, 1794900666067, '77aa', 10, 0);
            INSERT INTO params VALUES ('lr', '0.001', '77aa'), ('kind', 'adam', '77aa');
            INSERT INTO tags VALUES ('mlflow.note.content', 'a note', '77aa'), ('team', 'vision', '77aa');
            """
        )


@pytest.mark.parametrize(("make", "unread"), [(_folder_store, 1), (_database, 0)])
def test_both_stores_of_mlflow_say_the_same(tmp_path: Path, make: object, unread: int) -> None:
    place = tmp_path / "store"
    make(place)  # type: ignore[operator]  # one of the two above
    (run,) = runs_in(place)
    assert (run.run_id, run.project, run.name, run.notes) == ("77aa", "stories", "first", "a note")
    assert (run.tags, run.config, run.status) == (("team:vision",), {"lr": 0.001, "kind": "adam"}, "finished")
    assert (run.started_ms, run.ended_ms) == (1_794_900_665_974, 1_794_900_666_320)
    points = points_of(run)
    assert (points["loss"][0], points["val/acc"]) == ((0, 0.5), [(10, 0.25)])
    assert points["loss"][1][0] == 1
    assert math.isnan(points["loss"][1][1])
    assert sum(run.unread.values()) == unread


def test_an_export_of_neptune(tmp_path: Path) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"attribute_path": "sys/name", "attribute_type": "string", "string_value": "calm sea"},
        {"attribute_path": "sys/tags", "attribute_type": "string_set", "string_set_value": ["a", "b"]},
        {"attribute_path": "sys/creation_time", "attribute_type": "datetime", "datetime_value": at},
        {"attribute_path": "params/lr", "attribute_type": "float", "float_value": 0.1},
        {"attribute_path": "model", "attribute_type": "file", "string_value": "x"},
        *(
            {
                "attribute_path": "train/loss",
                "attribute_type": "float_series",
                "step": Decimal(step),
                "timestamp": at,
                "float_value": 1 / (step + 1),
            }
            for step in range(5)
        ),
    ]
    names = ("step", "timestamp", "float_value", "string_value", "string_set_value", "datetime_value")
    whole = [{"project_id": "w/p", "run_id": "RUN/1", **dict.fromkeys(names), **row} for row in rows]
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(whole), tmp_path / "data" / "part_0.parquet")
    (run,) = runs_in(tmp_path)
    assert (run.run_id, run.project, run.name, run.tags) == ("RUN-1", "w/p", "calm sea", ("a", "b"))
    assert (run.config, run.started_ms) == ({"params/lr": 0.1}, round(at.timestamp() * 1000))
    assert points_of(run) == {"train/loss": [(step, 1 / (step + 1)) for step in range(5)]}
    assert run.unread == {"attributes of the kind file": 1}


def test_what_is_known_to_nobody_is_said(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(InvalidArgument, match="of no kind that is known here"):
        runs_in(tmp_path / "note.txt")
    with pytest.raises(DataError, match="is known here"):
        runs_in(tmp_path)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(DataError, match="is no database of MLflow"):
        runs_in(tmp_path / "other.db")
    (tmp_path / "plain.csv").write_text("step,loss\n1,0.5\n")
    (run,) = runs_in(tmp_path / "plain.csv")
    assert [*next(iter(run.parts.values()))()] == [ImportedPoint("loss", 1, 0, 0.5)]
    assert [batch.runs[:] for batch in run_batches(run, {})] == [[]]


def _accepted(run: ImportedRun) -> list[Batch]:
    """Its batches, of which the observatory refuses none."""
    batches = list(run_batches(run, {}))
    for batch in batches:
        check_extras(batch)
        to_columns(batch)
    return batches


def test_a_database_takes_anything_and_every_point_of_it_comes(tmp_path: Path) -> None:
    place = tmp_path / "mlflow.db"
    _database(place)
    with sqlite3.connect(place) as made:
        rows: list[tuple[Any, ...]] = [
            ("loss", None, 1, "77aa", 2, 0),
            ("loss", "much", 1, "77aa", 3, 0),
            ("loss", 0.125, None, "77aa", 4, None),
            ("loss", 0.5, 1, "77aa", "late", 0),
            ("loss", None, 1, "77aa", 5, 1),
            (None, 0.5, 1, "77aa", 6, 0),
            (b"l\xf6ss", 1.7976931348623157e308, 1, "77aa", 7, 0),
            ("loss", 0.0625, 1, "77aa", None, 0),
        ]
        made.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
        said = [(None, "x", "77aa"), (b"\xff", None, "77aa"), ("long", "y" * 300, "77aa"), ("two", "a\nb", "77aa")]
        for table in ("params", "tags"):
            made.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", said)  # noqa: S608  our own words
        made.execute("INSERT INTO tags VALUES ('t', CAST(x'f6' AS TEXT), '77aa')")
        made.execute("INSERT INTO runs VALUES ('99cc', 7, NULL, 'soon', ?, 22, 'active')", (10**18,))
    run, odd = sorted(runs_in(place), key=lambda run: run.run_id)
    batches = _accepted(run)
    values = {
        step: value for batch in batches for step, value in zip(batch.points.step, batch.points.value, strict=True)
    }
    assert (values[4], values[7], len(values), sum(len(batch.points.step) for batch in batches)) == (
        0.125,
        math.inf,
        6,
        7,
    )
    assert math.isnan(values[5])
    assert run.unread["rows of loss that hold no point"] == 3
    assert run.unread["params without a name"] == run.unread["tags without a name"] == 1
    assert {"team:vision", "two:a b", "t:\ufffd", "\ufffd:"} < set(batches[0].runs[0].tags)
    _accepted(odd)
    assert (odd.name, odd.unread["times before 1970 or after 2200"]) == ("7", 1)
    with sqlite3.connect(place) as made:
        made.execute("DROP TABLE tags")
        made.execute("DROP TABLE metrics")
    run = runs_in(place)[0]
    assert run.unread["tags: no such table: tags"] == 1
    with pytest.raises(DataError, match="no such table: metrics"):
        _accepted(run)


def test_files_that_may_not_be_read_take_no_run_with_them(tmp_path: Path) -> None:
    """A name that leads to itself stands for a file that cannot be opened, for root as well."""
    _folder_store(tmp_path)
    run = tmp_path / "22" / "77aa"
    (run / "metrics" / "bad").mkdir()
    (run / "metrics" / "bad" / "\udcff").write_text("1794900666067 0.5 0\n")
    (run / "tags" / "\udcff").write_text("x" * 200)
    other = tmp_path / "22" / "66"
    (other / "metrics").mkdir(parents=True)
    (other / "meta.yaml").symlink_to("meta.yaml")
    (tmp_path / "data.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "run-x.wandb").mkdir()
    broken: list[str] = []
    (found,) = find_runs(tmp_path, 0, lambda file, _: broken.append(file.name))
    assert found.run_id == "77aa"
    assert len(_accepted(found)) == 2
    assert "data.parquet" in broken


def test_rows_of_neptune_that_hold_nothing_take_no_other_with_them(tmp_path: Path) -> None:
    at = datetime(2026, 1, 2)  # noqa: DTZ001  an export without a zone
    names = ("step", "timestamp", "float_value", "string_value", "string_set_value")
    point = {"attribute_path": "loss", "attribute_type": "float_series", "timestamp": at}
    rows: list[dict[str, Any]] = [
        {**point, "step": 1.0, "float_value": 0.5},
        {**point, "step": math.nan, "float_value": 0.5},
        {**point, "step": math.inf, "float_value": 0.5},
        {**point, "step": 2.0},
        {**point, "step": 3.0, "float_value": 0.5, "run_id": None},
        {**point, "step": 4.0, "float_value": 0.25, "attribute_path": None},
        {**point, "float_value": 0.125},
        {"attribute_path": "sys/tags", "attribute_type": "string_set", "string_set_value": ["a", None, "b" * 99]},
    ]
    whole = [{"project_id": "p", "run_id": "R", **dict.fromkeys(names), **row} for row in rows]
    pq.write_table(pa.Table.from_pylist(whole), tmp_path / "part_0.parquet")
    data = (tmp_path / "part_0.parquet").read_bytes()
    (tmp_path / "part_1.parquet").write_bytes(data[:4] + b"\xff" * 60 + data[64:])
    (run,) = runs_in(tmp_path)
    batches = _accepted(run)
    kept = [*zip(batches[1].points.step, batches[1].points.value, strict=True)]
    assert kept[:2] == [(1, 0.5), (0, 0.125)]
    assert batches[1].points.event_time_ms[0] == round(at.replace(tzinfo=UTC).timestamp() * 1000)
    assert run.unread["points of loss without a step or a value"] >= 3
    assert run.unread["rows without a run or an attribute"] >= 2
    assert any(what.startswith("the rest of part_1.parquet") for what in run.unread)


def test_without_pyarrow_a_parquet_file_is_named_with_what_to_install_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / WANDB.name).write_bytes(WANDB.read_bytes())
    (tmp_path / "part_0.parquet").write_bytes(b"PAR1")
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    told: list[str] = []
    found = list(find_runs(tmp_path, 0, lambda _, error: told.append(error.hint)))
    assert ([run.run_id for run in found], told) == (["abc12345"], ["pip install 'strata-runtime[data]'"])


def test_a_wrong_length_in_a_wandb_file_costs_its_block_and_no_more(tmp_path: Path) -> None:
    whole = bytearray(WANDB.read_bytes())
    block = 32 * 1024
    long = bytes(whole) + bytes(whole[7:]) * (3 * block // len(whole) + 1)  # records go on after a block
    assert len(long) > 3 * block
    place = 7
    while place < 9_000:
        place += 7 + int.from_bytes(long[place + 4 : place + 6], "little")
    file = tmp_path / "run-long.wandb"
    file.write_bytes(long[: place + 4] + b"\xff\xff" + long[place + 6 :])
    (run,) = runs_in(file)
    assert run.unread["pieces with a wrong checksum"] >= 1


def test_a_run_of_wandb_that_was_resumed_has_all_its_files(tmp_path: Path) -> None:
    for folder in ("offline-run-20260101_000000-abc12345", "offline-run-20260102_000000-abc12345"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / WANDB.name).write_bytes(WANDB.read_bytes())
    (run,) = runs_in(tmp_path)
    assert len(run.parts) == 2
    assert sum(len(batch.points.step) for batch in _accepted(run)) == 2 * 210
    assert run.unread == {"values that are no numbers": 2}


def test_a_damaged_file_of_several_costs_no_point_of_the_others(tmp_path: Path) -> None:
    good = tmp_path / "plain.csv"
    good.write_text("step,loss\n1,0.5\n2,0.25\n")
    (run,) = runs_in(good)
    (read,) = run.parts.values()

    def damaged() -> Iterator[ImportedPoint]:
        yield from read()
        raise OSError(5, "Input/output error", "disk")

    run.parts = {"first": damaged, "second": read}
    sent: list[int] = []
    with pytest.raises(DataError, match="disk cannot be read: Input/output error"):
        sent += (len(batch.points.step) for batch in run_batches(run, {}))
    assert sent == [2, 2]
    run.summary, run.name = {"table": "x" * 100_000, "n" * 300: 1, "best": 0.5}, "n" * 300
    run.notes, run.tags = "n\ud800" * 20_000, tuple(map(str, range(200)))
    (said, *_) = run_batches(replace(run, parts={}), {})
    check_extras(said)
    assert [value.name for value in said.summaries] == ["best"]
    assert len(said.runs[0].tags) == 100
