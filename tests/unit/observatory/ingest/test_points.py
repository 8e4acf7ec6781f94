"""Points as JSON: what is no point is refused in words, and nothing that was sent is left out in silence."""

from typing import Any

import pytest

from strata.errors import InvalidArgument
from strata.observatory.ingest.points import from_json

_GOOD = {"metric": "loss", "step": 3, "value": 0.5}


@pytest.mark.parametrize(
    ("point", "told"),
    [
        ({"metric": None}, "metric '' is not a valid metric name"),
        ({"metric": True}, "metric is 'True', it must be a text"),
        ({"host": {}}, "host is '{}', it must be a text"),
        ({"unit": 0}, "unit is '0', it must be a text"),
        ({"rank": ""}, "rank is '', it must be a whole number, 0 or more"),
        ({"rank": []}, "rank is '[]', it must be a whole number, 0 or more"),
        ({"steps": 4}, "there is no field 'steps'"),
        ({"timestamp": 1_794_816_002}, "there is no field 'timestamp'"),
    ],
)
def test_a_point_that_is_none_is_named_with_what_is_wrong(point: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        from_json("r", {"points": [_GOOD, {**_GOOD, **point}]}, 1)
    assert refused.value.message == f"points[1]: {told}"


@pytest.mark.parametrize("body", [{"batch_id": []}, {"batch_id": 7}, {"batch": "a"}])
def test_a_batch_without_a_text_as_its_id_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="batch"):
        from_json("r", {"points": [_GOOD], **body}, 1)


def test_what_is_null_has_its_default() -> None:
    nulls = dict.fromkeys(("host", "rank", "device", "unit", "tags", "event_time"))
    plain, same = (from_json("r", {"points": [point]}, 1) for point in (_GOOD, {**_GOOD, **nulls}))
    assert same == plain
