"""Columns as lists, rows, and tables of the libraries that happen to be there."""

import pytest

from strata.client.frame import Frame, _library
from strata.errors import StrataError

FRAME = Frame({"step": [1, 2], "value": [0.5, float("inf")]})


def test_columns_and_rows() -> None:
    assert len(FRAME) == 2
    assert FRAME["step"] == [1, 2]
    assert FRAME.rows() == [{"step": 1, "value": 0.5}, {"step": 2, "value": float("inf")}]
    assert repr(FRAME) == "<2 rows: step, value>"
    assert (len(Frame({})), Frame({}).rows(), len(Frame({"a": []}))) == (0, [], 0)


def test_a_table_of_a_library() -> None:
    assert FRAME.arrow().to_pydict() == FRAME.columns


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(StrataError, match="no_such_library is not installed"):
        _library("no_such_library")
