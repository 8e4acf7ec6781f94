"""Batches from the wire: NaN is data, absurd names are refused, nothing is half accepted."""

import math

import numpy as np
import pytest

from strata.errors import InvalidArgument
from strata.observatory.batch.columns import decode, log_entry, normalise, to_columns
from strata.observatory.ingest.points import from_json
from strata.protocol.generated.telemetry_pb2 import Batch


def batch(metric: str = "loss", run_id: str = "r1", index: int = 0) -> Batch:
    message = Batch(batch_id="b1")
    message.series.add(index=index, run_id=run_id, metric=metric, device=65535)
    message.points.series.append(index)
    message.points.step.append(7)
    message.points.event_time_ms.append(1_794_000_000_000)
    message.points.value.append(0.5)
    return message


def test_columns_keep_nan_and_inf() -> None:
    message = batch()
    for value in (math.nan, math.inf):
        message.points.series.append(0)
        message.points.step.append(8)
        message.points.event_time_ms.append(1_794_000_000_000)
        message.points.value.append(value)
    columns = decode(message.SerializeToString())
    np.testing.assert_array_equal(columns.values, [0.5, math.nan, math.inf])
    assert columns.steps.tolist() == [7, 8, 8]
    assert columns.heads[0].key.metric == "loss"


def test_any_numbering_of_the_series_is_understood() -> None:
    message = batch(index=900)
    message.series.add(index=5, run_id="r1", metric="lr", device=65535)
    message.points.series.append(5)
    message.points.step.append(1)
    message.points.event_time_ms.append(1)
    message.points.value.append(1.0)
    columns = to_columns(message)
    assert [columns.heads[place].key.metric for place in columns.series] == ["loss", "lr"]


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (batch(metric="lo\nss"), "not a valid metric name"),
        (batch(metric=""), "not a valid metric name"),
        (batch(run_id="../etc"), "run_id"),
        (batch(run_id="r" * 200), "run_id"),
    ],
)
def test_absurd_names_are_refused(message: Batch, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        to_columns(message)


def test_unequal_columns_unknown_series_and_impossible_times_are_refused() -> None:
    uneven = batch()
    uneven.points.step.append(8)
    with pytest.raises(InvalidArgument, match="differ in length"):
        to_columns(uneven)
    stray = batch()
    stray.points.series[0] = 3
    with pytest.raises(InvalidArgument, match="series 3"):
        to_columns(stray)
    early = batch()
    early.points.event_time_ms[0] = -5
    with pytest.raises(InvalidArgument, match="-5"):
        to_columns(early)
    far = batch()
    far.points.step[0] = 1 << 60
    with pytest.raises(InvalidArgument, match="2\\^53"):
        to_columns(far)
    with pytest.raises(InvalidArgument, match=r"telemetry\.Batch"):
        decode(b"\xff\xff\xff")


def test_times_that_are_missing_are_filled_in_before_they_are_stored() -> None:
    message = batch()
    del message.points.event_time_ms[:]
    message.logs.add(message="hello", level="WARNING")
    assert not normalise(message, 1_000)
    assert normalise(message, 2_000)
    columns = to_columns(message)
    assert columns.times.tolist() == [1_000]
    assert columns.logs[0].event_time_ms == 1_000


def test_log_ids_are_stable_and_sort_by_time() -> None:
    message = Batch(batch_id="b")
    for sequence, time in enumerate((2_000, 2_000, 3_000)):
        message.logs.add(event_time_ms=time, message=str(sequence), level="warning", sequence=sequence)
    entries = [log_entry(line, "b", place) for place, line in enumerate(message.logs)]
    assert entries == [log_entry(line, "b", place) for place, line in enumerate(message.logs)]
    assert sorted(entry.id for entry in entries) == [entry.id for entry in entries]
    assert entries[0].level == "warn"


def test_json_points_become_the_same_batch() -> None:
    body = {
        "points": [
            {"metric": "loss", "step": 1, "value": 0.25, "event_time": 1_794_000_000.5, "rank": 2, "tags": {"b": 1}},
            {"metric": "loss", "step": 2, "value": None, "rank": 2, "tags": {"b": 1}},
            {"metric": "gpu", "value": "NaN", "device": 0, "unit": "%"},
        ]
    }
    columns = to_columns(from_json("r1", body, 9_000))
    assert len(columns.heads) == 2
    assert columns.times.tolist() == [1_794_000_000_500, 9_000, 9_000]
    assert columns.steps.tolist() == [1, 2, 0]
    assert math.isnan(columns.values[1])
    assert columns.heads[0].tags_json == '{"b":1}'
    assert columns.heads[1].key.device == 0


@pytest.mark.parametrize(
    ("point", "complaint"),
    [
        ({"step": 1, "value": 1}, "metric is missing"),
        ({"metric": "a", "step": 1}, "value is missing"),
        ({"metric": "a", "step": 1.5, "value": 1}, "whole number"),
        ({"metric": "a", "step": -1, "value": 1}, "whole number"),
        ({"metric": "a", "step": 1, "value": "much"}, "much"),
        ({"metric": "a", "step": 1, "value": True}, "boolean"),
        (7, "object"),
    ],
)
def test_json_points_that_make_no_sense_are_named(point: object, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        from_json("r1", {"points": [point]}, 1)
