"""Points in time as people write them."""

import pytest

from strata.errors import InvalidArgument
from strata.observatory.records.times import parse_time


@pytest.mark.parametrize(
    "written",
    [
        1715832000,
        1715832000.0,
        "1715832000",
        "2024-05-16T04:00:00Z",
        "2024-05-16T06:00:00+02:00",
        "2024-05-16T06:00:00 02:00",
        "2024-05-16 04:00:00",
        "2024-05-16 04:00:00.000",
        "20240516T040000Z",
    ],
)
def test_every_form_means_the_same_moment(written: object) -> None:
    assert parse_time("from_time", written) == 1715832000.0


def test_fractions_are_kept_and_a_day_is_its_midnight() -> None:
    assert parse_time("t", "2024-05-16 04:00:00.250") == 1715832000.25
    assert parse_time("t", "2024-05-16") == 1715817600.0


@pytest.mark.parametrize(
    "written", ["yesterday", "", "-1", "nan", "inf", True, None, [1], "2024-13-01", "1969-12-31T23:59:59Z", 10**400]
)
def test_what_is_no_time_is_refused_with_the_forms(written: object) -> None:
    with pytest.raises(InvalidArgument, match=r"from_time is .* no time between 1970 and 2299"):
        parse_time("from_time", written)


def test_milliseconds_are_recognised() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_time("from_time", 1715832000000)
    assert "Divide by 1000" in refused.value.hint
    with pytest.raises(InvalidArgument) as refused:
        parse_time("from_time", "noon")
    assert "ISO 8601" in refused.value.hint
