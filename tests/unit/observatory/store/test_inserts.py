"""A group that the store refuses: the bad rows end up alone and aside, every other row arrives once."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.clock import ManualClock
from strata.errors import Busy, Internal, InvalidArgument, StoreUnavailable, StrataError
from strata.observatory.background.setaside import SetAside
from strata.observatory.records.finding import Finding
from strata.observatory.store.inserts import Inserts
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import TIME, Column, Table


class PickyStore:
    """Refuses every block that holds a row for which `why` gives an error; answers which steps it holds."""

    def __init__(self, why: Callable[[int], StrataError | None]) -> None:
        self.ready = True
        self.rows: list[int] = []
        self.calls = 0
        self._why = why

    async def insert(self, table: str, rows: Table, *, token: str) -> None:
        self.calls += 1
        numbers = rows["step"].to_list()
        for number in numbers:
            error = self._why(number)
            if error is not None:
                raise error
        self.rows += numbers

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        assert parameters is not None
        return Table.of({"n": [self.rows.count(parameters["step"]) if "{step:UInt64}" in sql else 0]})

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table:
        raise NotImplementedError

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError

    async def wait_ready(self) -> None: ...


class World:
    def __init__(self, folder: Path, why: Callable[[int], StrataError | None]) -> None:
        self.told: list[Finding] = []
        self.store = PickyStore(why)
        self.aside = SetAside(ManualClock(), self.told.extend)
        self.file = folder / "refused.jsonl"
        self.inserts = Inserts(self.store, self.aside, self.file)

    async def send(self, count: int, *, stubborn: bool = False, repeated: bool = False) -> None:
        columns: dict[str, Any] = {"run_id": ["r1"] * count, "step": list(range(count))}
        columns |= {name: [0] * count for name in ("metric", "host", "rank", "device")}
        columns["event_time"] = Column(TIME, np.zeros(count, np.int64))
        await self.inserts.send("metric_points", Table.of(columns), "t", stubborn=stubborn, repeated=repeated)

    @property
    def num_aside(self) -> int:
        return sum(part.count for part in self.aside.view())


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 60), bad=st.sets(st.integers(0, 59), max_size=8))
async def test_exactly_the_bad_rows_are_set_aside_and_a_repeat_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, count: int, bad: set[int]
) -> None:
    world = World(tmp_path_factory.mktemp("w"), lambda row: InvalidArgument("no") if row in bad else None)
    good = [row for row in range(count) if row not in bad]
    for repeated in (False, True):
        await world.send(count, repeated=repeated)
        assert world.store.rows == good
        assert world.num_aside == count - len(good)
    if len(good) < count:
        kept = [json.loads(line)["step"] for line in world.file.read_text().splitlines()]
        assert set(kept) == bad & set(range(count))


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 60), stored=st.integers(0, 60))
async def test_a_repeat_sends_what_an_earlier_try_did_not(
    tmp_path_factory: pytest.TempPathFactory, count: int, stored: int
) -> None:
    """The earlier try was cut into halves, and died after some of them."""
    world = World(tmp_path_factory.mktemp("w"), lambda _: None)
    world.store.rows = list(range(min(stored, count)))
    await world.send(count, repeated=True)
    assert sorted(world.store.rows) == list(range(count))


async def test_it_is_told_once_with_the_row_and_the_reason(tmp_path: Path) -> None:
    world = World(tmp_path, lambda row: InvalidArgument("value is too bad") if row == 7 else None)
    await world.send(20)
    item = "a row of metric_points (run_id r1, step 7, event_time 1970-01-01 00:00:00+00:00)"
    assert [(one.kind, one.message) for one in world.told] == [
        ("set_aside", f"metric store sets {item} aside: value is too bad")
    ]
    assert world.aside.view()[0].items[0].item == item


@pytest.mark.parametrize("error", [Busy("too many parts"), StoreUnavailable("gone")])
async def test_a_store_that_speaks_of_itself_costs_no_row_however_often(tmp_path: Path, error: StrataError) -> None:
    world = World(tmp_path, lambda row: error if row == 7 else None)
    with pytest.raises(type(error)):
        await world.send(20, stubborn=True)
    assert world.num_aside == 0


async def test_an_unknown_refusal_is_waited_for_first_and_then_looked_at_row_by_row(tmp_path: Path) -> None:
    world = World(tmp_path, lambda row: Internal("unknown") if row == 0 else None)
    with pytest.raises(Internal):
        await world.send(20)
    await world.send(20, stubborn=True)
    assert world.store.rows == list(range(1, 20))
    assert world.num_aside == 1


async def test_a_store_that_lets_nothing_in_is_at_fault_and_no_row_is(tmp_path: Path) -> None:
    world = World(tmp_path, lambda _: Internal("unknown"))
    with pytest.raises(Internal):
        await world.send(5_000, stubborn=True)
    assert world.num_aside == 0
    assert world.store.calls < 100


async def test_a_group_that_is_bad_through_and_through_does_not_take_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path, lambda _: InvalidArgument("no"))
    await world.send(20_000)
    assert world.num_aside == 20_000
    assert world.store.calls < 1_000
