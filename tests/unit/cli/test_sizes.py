"""`--workers`: one number or two."""

import pytest

from strata.cli.sizes import Size, parse_size
from strata.errors import InvalidArgument


def test_a_size_is_one_number_or_two() -> None:
    assert parse_size("4") == Size(4, 4)
    assert not parse_size("4").elastic
    assert parse_size("2..8") == Size(2, 8)
    assert parse_size("2..8").elastic


@pytest.mark.parametrize(
    "text", ["8..2", "0..4", "0", "2..", "..4", "a..b", "", "4.0", "-1", "2...4", "nan", "٣", "\udcff"]
)
def test_anything_else_is_refused_with_one_sentence(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^--workers "):
        parse_size(text)
