"""Loading a run while points come in: cache = store + what the store has not got yet, whatever the order of things."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from strata.clock import ManualClock
from strata.errors import StoreUnavailable
from strata.observatory.background.setaside import SetAside
from strata.observatory.batch.columns import decode, to_columns
from strata.observatory.history.loader import History
from strata.observatory.ingest.points import from_json
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.view import LiveView
from strata.observatory.spool.spool import Progress, Spool
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table
from strata.observatory.store.writer import StoreWriter
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import AttemptStart
from strata.types.metrics import attempt_tags


class MemoryStore:
    """Answers the questions of a load from a list of (metric, step), none of them superseded; one bucket per row."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []
        self.ready = True

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        metrics = sorted({metric for metric, _ in self.rows})
        key: dict[str, Any] = {"run_id": "r1", "host": "", "rank": 0, "device": 65535, "unit": ""}
        counts = {metric: sum(name == metric for name, _ in self.rows) for metric in metrics}
        rest = {"bad": 0, "newest": 1.0, "last_ms": 1_000, "lowest": 1.0, "highest": 1.0}
        tops = {metric: max(step for name, step in self.rows if name == metric) for metric in metrics}
        return Table.from_rows(
            [
                {**key, **rest, "metric": metric, "points": counts[metric], "top_step": tops[metric]}
                for metric in metrics
            ]
        )

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table:
        key: dict[str, Any] = {"run_id": "r1", "host": "", "rank": 0, "device": 65535, "unit": ""}
        names = ("smin", "smax", "tmin", "tmax", "sfirst", "tfirst", "slast", "tlast")
        rows = [
            {
                **key,
                "metric": metric,
                "n": 1,
                "bad": 0,
                "vmin": 1.0,
                "vmax": 1.0,
                "vlast": 1.0,
                **dict.fromkeys(names, step),
            }
            for metric, step in sorted(self.rows)
        ]
        return Table.from_rows(rows)

    async def insert(self, table: str, rows: Table, *, token: str) -> None:
        raise NotImplementedError

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError

    async def wait_ready(self) -> None: ...


class World:
    """A live view over a spool and a store; the writer is moved by hand."""

    def __init__(self, folder: Path) -> None:
        clock = ManualClock()
        self.series, self.cache, runs = SeriesTable(), SeriesCache(max_series=10), RunBook(clock)
        snapshots = SnapshotBuilder(self.series, self.cache, runs)
        self.live = LiveView(self.series, self.cache, runs, Broadcaster(lambda _: b"", clock), snapshots)
        self.spool, self.store = Spool(folder), MemoryStore()
        self.spool.open()
        writer = StoreWriter(self.spool, self.store, self.series, SetAside(clock, lambda _: None))
        self.history = History(self.store, writer, self.spool, self.series, self.cache)
        self.step = 0

    def accept(self, metric: str = "loss", tags: str = "") -> None:
        self.step += 1
        point = {"metric": metric, "step": self.step, "value": 1.0, "tags": tags}
        message = from_json("r1", {"points": [point]}, 1_000 + self.step)
        end = self.spool.append([(self.spool.digest(""), message.SerializeToString())])[0]
        self.live.take(to_columns(message), end)

    def write(self) -> None:
        """The store gets everything up to now."""
        stored = {step for _, step in self.store.rows}
        for record in self.spool.read(0, limit=self.spool.end, max_bytes=1 << 30).records:
            columns = decode(record.payload)
            step = int(columns.steps[0])
            if step not in stored:
                self.store.rows.append((columns.heads[0].key.metric, step))
        self.spool.save(Progress(consumed=self.spool.end, pending=self.spool.end))

    def totals(self) -> dict[str, int]:
        self.live.tick()
        numbers = self.series.of_run("r1")
        return {self.series.key(n).metric: self.cache.stats(n).total_points for n in numbers}


@pytest.mark.parametrize("ticked", [True, False])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("whole", [True, False])
async def test_a_load_neither_loses_nor_doubles(tmp_path: Path, ticked: bool, written: bool, whole: bool) -> None:
    """Every combination of shown or pending with stored or not."""
    world = World(tmp_path)
    world.accept()
    world.live.tick()
    world.write()
    world.accept()
    world.accept("lr")
    if ticked:
        world.live.tick()
    if written:
        world.write()
    if whole:
        world.live.tick()
        await world.history.fetch(world.live, world.series.of_run("r1"))
    else:
        await world.history.outline(world.live)
    assert world.totals() == {"loss": 2, "lr": 1}
    world.accept()
    assert world.totals() == {"loss": 3, "lr": 1}
    world.spool.close()


@pytest.mark.parametrize("written", [True, False])
async def test_what_was_superseded_when_it_came_is_counted_once(tmp_path: Path, written: bool) -> None:
    """It waited on its rank's disk. The store has its series, or starts just now."""
    world = World(tmp_path)
    world.accept(tags=attempt_tags(1))
    if written:
        world.write()
    world.live.attempts.begin([AttemptStart(run_id="r1", attempt=2, step=2, event_time_ms=2_000)])
    world.accept(tags=attempt_tags(1))
    world.accept(tags=attempt_tags(1))
    world.live.tick()
    for _ in range(2):
        await world.history.outline(world.live)
        await world.history.fetch(world.live, world.series.of_run("r1"))
    assert world.totals() == {"loss": 1}
    (run,) = world.live.runs.all()
    assert (run.num_points, run.superseded_points) == (1, 2)


async def test_series_that_are_asked_for_together_do_not_push_each_other_out(tmp_path: Path) -> None:
    """Room for the one that is read back is made among the others, not among those that the same answer shows."""
    world = World(tmp_path)
    for name in range(12):  # two more than there are rows
        world.accept(f"m{name:02d}")
        world.live.tick()
    world.write()
    asked = world.series.of_run("r1")[:10]
    lost = [number for number in asked if not world.cache.has(number)]
    assert 0 < len(lost) < len(asked)
    await world.history.fetch(world.live, lost, keep=asked)
    assert all(world.cache.has(number) for number in asked)


async def test_a_series_that_only_the_spool_has_gets_a_row(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in range(12):
        world.accept(f"m{name:02d}")
        world.live.tick()
    lost = [number for number in world.series.of_run("r1") if not world.cache.has(number)]
    await world.history.fetch(world.live, lost)
    assert all(world.cache.has(number) for number in lost)


async def test_nothing_is_loaded_while_an_insert_is_in_doubt(tmp_path: Path) -> None:
    """Its rows may be in the store and are still in the spool: they would be shown twice."""
    world = World(tmp_path)
    world.spool.save(Progress(consumed=0, pending=10))
    with pytest.raises(StoreUnavailable, match="interrupted"):
        await world.history.outline(world.live)
