"""Answers filled from records by name: what is told goes first, empty texts are null, times have two forms."""

from dataclasses import dataclass

import pytest

from strata.observatory.answers.checkpoints import CheckpointRow
from strata.observatory.records.fill import fill
from strata.protocol.generated.control_pb2 import BarrierVitals


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An answer with every kind of field."""

    id: str
    step: int
    owner: str | None
    note: str
    seen_at: int | None
    seen_at_ms: int | None
    ended_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    id: str = "place"
    step: int = 3
    owner: str = ""
    ended_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    step: int = 9
    note: str = ""
    seen_at: float | None = 1.9996


def test_the_first_source_that_knows_a_name_gives_it_and_what_is_told_goes_before() -> None:
    shown = fill(Shown, Place(), Sight(), id="told")
    assert (shown.id, shown.step) == ("told", 3)
    assert fill(Shown, Place(id="other"), Sight(step=1), id="again").step == 3, "the plan is kept, the values are not"


def test_an_empty_text_is_null_only_where_null_is_allowed() -> None:
    shown = fill(Shown, Place(), Sight())
    assert (shown.owner, shown.note) == (None, "")
    assert fill(Shown, Place(), Sight(), owner="").owner is None
    assert fill(Shown, Place(owner="somebody"), Sight()).owner == "somebody"


def test_a_time_has_both_forms_whichever_is_known() -> None:
    shown = fill(Shown, Place(ended_at=2.5), Sight())
    assert (shown.seen_at, shown.seen_at_ms, shown.ended_at_ms) == (2, 2000, 2500), "the two never disagree"
    told = fill(Shown, Place(), Sight(), seen_at=7.25)
    assert (told.seen_at, told.seen_at_ms, told.ended_at_ms) == (7, 7250, None)
    stored = fill(Shown, Place(), Sight(), seen_at_ms=8_999)
    assert (stored.seen_at, stored.seen_at_ms) == (8, 8_999)
    unknown = fill(Shown, Place(), Sight(seen_at=None))
    assert (unknown.seen_at, unknown.seen_at_ms) == (None, None)


def test_a_message_is_a_source_and_a_row_may_be_told_whole() -> None:
    assert fill(Shown, BarrierVitals(step=5), Place(), Sight()).step == 5
    row = {"metric": "m", "host": "", "rank": 0, "device": 1, "step": 2, "value": 0.5, "unit": "", "tags": {}}
    shown = fill(CheckpointRow, **row, event_time_ms=3_001)
    assert (shown.event_time, shown.event_time_ms, shown.value) == (3, 3_001, 0.5)


def test_a_field_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(TypeError, match="Shown has no note"):
        fill(Shown, Place(), seen_at=1.0)
