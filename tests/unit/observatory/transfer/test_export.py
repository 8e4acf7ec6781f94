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
from strata.observatory.transfer.export import export_run

_HEADER = '"run_id","metric","host","rank","device","unit","step","event_time_ms","value","attempt"'


class OneRun:
    """Two metrics of two points each."""

    ready = True

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        if "series_rollup" in sql:
            return Table.from_rows([{"metric": "acc"}, {"metric": "loss"}])
        both = np.zeros(2, np.int64)
        words = {"run_id": "r", "metric": (parameters or {})["metric"], "host": ""}
        numbers = {"rank": np.zeros(2, np.uint32), "device": np.zeros(2, np.uint16)}
        rest = {"step": np.arange(2, dtype=np.uint64), "ms": both, "value": np.arange(2) / 2}
        columns: dict[str, Any] = {name: words_of([word], both) for name, word in words.items()}
        columns |= {**numbers, "unit": Column("String", ["", "nats"]), **rest, "attempt": np.zeros(2, np.uint32)}
        return Table.of(columns)

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
