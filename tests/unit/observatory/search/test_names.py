"""Names of metrics by what somebody types: all words, the beginning first, and a run that has it."""

import pytest

from strata.clock import ManualClock
from strata.observatory.batch.columns import to_columns
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.snapshot import SnapshotBuilder
from strata.observatory.live.view import LiveView
from strata.observatory.search.names import find_names, plan_names
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import NO_DEVICE

NAMES = ["val/loss", "train/Loss", "loss", "lossless", "sys.cpu", "layer 1/grad", "%"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("loss", ["loss", "lossless", "train/Loss", "val/loss"]),
        ("LOSS val", ["val/loss"]),
        (" grad  layer ", ["layer 1/grad"]),
        ("%", ["%"]),
        ("nothing", []),
        ("", sorted(NAMES, key=str.lower)),
        ("\ud800", []),
    ],
)
def test_every_word_occurs_and_the_beginning_comes_first(text: str, found: list[str]) -> None:
    assert plan_names(NAMES, text) == found


def test_a_name_comes_with_the_newest_run_that_people_look_at() -> None:
    clock = ManualClock(wall=1_700_000_000.0)
    series, cache, runs = SeriesTable(), SeriesCache(max_series=64), RunBook(clock)
    live = LiveView(series, cache, runs, Broadcaster(lambda _: b"", clock), SnapshotBuilder(series, cache, runs))
    for at, (run_id, metrics) in enumerate({"a": ("loss", "rare"), "b": ("loss",), "c": ("loss", "gone")}.items(), 1):
        batch = Batch(batch_id=run_id)
        batch.runs.add(run_id=run_id, status="finished", started_at_ms=at, updated_at_ms=at)
        for index, metric in enumerate(metrics):
            batch.series.add(index=index, run_id=run_id, metric=metric, device=NO_DEVICE)
            batch.points.series.append(index)
            batch.points.step.append(1)
            batch.points.event_time_ms.append(at)
            batch.points.value.append(1.0)
        live.take(to_columns(batch), at)
    live.tick()

    def told(text: str, limit: int = 10) -> list[tuple[str, str]]:
        return [(found.metric, found.run.run_id) for found in find_names(live, text, limit)]

    assert told("") == [("gone", "c"), ("loss", "c"), ("rare", "a")]
    assert told("", limit=1) == [("gone", "c")]
    live.runs.edit("c", {"archived": "1"})
    assert told("loss") == [("loss", "b")]
    assert told("gone") == [("gone", "c")]  # nobody else has it
    live.runs.delete("c")
    assert told("gone") == []
