"""A run as a file: what the store answers is in it, and a missing library is named."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from strata.errors import MissingExtra, NotFound
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Column, Table, words_of
from strata.observatory.transfer.export import Format, export_run

_HEADER = '"run_id","metric","host","rank","device","unit","step","event_time_ms","value","attempt"'


class OneRun:
    """A run, or several alike: two metrics, or those that are named, of two points each."""

    ready = True

    def __init__(self, *metrics: str) -> None:
        self._metrics = metrics or ("acc", "loss")
        self.num_asked = 0

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        given = parameters or {}
        if "series_rollup" in sql:
            series = [{"metric": metric, "points": 2} for metric in self._metrics for _ in given["runs"]]
            return Table.from_rows(series)
        self.num_asked += 1
        (run,), metrics = given["runs"], sorted(given["metrics"])
        num_rows = 2 * len(metrics)
        same = np.zeros(num_rows, np.int64)
        words = {"run_id": words_of([run], same), "metric": words_of(metrics, np.arange(num_rows) // 2)}
        numbers = {"rank": np.zeros(num_rows, np.uint32), "device": np.zeros(num_rows, np.uint16)}
        step = np.arange(num_rows, dtype=np.uint64) % 2
        columns: dict[str, Any] = {**words, "host": words_of([""], same), **numbers}
        columns |= {"unit": Column("String", ["", "nats"] * len(metrics)), "step": step, "ms": same, "value": step / 2}
        return Table.of({**columns, "attempt": np.zeros(num_rows, np.uint32)})

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table:
        raise NotImplementedError

    async def insert(self, table: str, rows: Table, *, token: str) -> None:
        raise NotImplementedError

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError

    async def wait_ready(self) -> None: ...


async def test_parquet_holds_every_point_with_its_type(tmp_path: Path) -> None:
    await export_run(OneRun(), {"r": None}, tmp_path / "r.parquet", "parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    assert [f'"{name}"' for name in table.column_names] == _HEADER.split(",")
    assert table["metric"].to_pylist() == ["acc", "acc", "loss", "loss"]
    assert table["unit"].to_pylist() == ["", "nats"] * 2
    assert table["value"].to_pylist() == [0.0, 0.5] * 2
    assert {str(table.schema.field(name).type) for name in ("rank", "attempt")} == {"uint32"}


async def test_csv_has_a_line_for_every_point(tmp_path: Path) -> None:
    await export_run(OneRun(), {"r": None}, tmp_path / "r.csv", "csv", only=["loss"])
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines == [_HEADER, '"r","loss","",0,0,"",0,0,0.0,0', '"r","loss","",0,0,"nats",1,0,0.5,0']


async def test_ten_thousand_metrics_are_asked_for_a_thousand_at_a_time(tmp_path: Path) -> None:
    names = [f"layer.{number}" for number in range(10_000)]
    run = OneRun(*names)
    await export_run(run, {"r": None}, tmp_path / "r.csv", "csv")
    lines = (tmp_path / "r.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1].strip('"') for line in lines] == [name for name in sorted(names) for _ in range(2)]
    assert run.num_asked == 10


@pytest.mark.parametrize("kind", ["csv", "parquet"])
async def test_what_a_run_was_forked_from_stands_before_it_metric_by_metric(tmp_path: Path, kind: Format) -> None:
    await export_run(OneRun("b", "a", "ä"), {"origin": 1, "r": None}, tmp_path / "r", kind)
    if kind == "csv":
        lines = [line.replace('"', "").split(",") for line in (tmp_path / "r").read_text().splitlines()[1:]]
        found = [(run, metric) for run, metric, *_ in lines]
    else:
        table = pq.read_table(tmp_path / "r")
        found = list(zip(table["run_id"].to_pylist(), table["metric"].to_pylist(), strict=True))
    assert found == [(run, metric) for metric in ("a", "b", "ä") for run in ("origin", "r") for _ in range(2)]


async def test_a_run_without_points_is_told_where_runs_are_listed(tmp_path: Path) -> None:
    for only, told in ((["nope"], "GET /api/outline"), ([], "`strata runs`")):
        with pytest.raises(NotFound) as raised:
            await export_run(OneRun(), {"r": None}, tmp_path / "r.csv", "csv", only=only)
        assert told in raised.value.hint


async def test_without_pyarrow_the_answer_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra) as raised:
        await export_run(OneRun(), {"r": None}, tmp_path / "r.parquet", "parquet")
    assert raised.value.hint == "pip install 'strata-runtime[data]'"
