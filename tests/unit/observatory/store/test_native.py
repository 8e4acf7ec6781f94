"""ClickHouse's Native format: what we write is read back, and what the engine writes is read as it means it."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.errors import Internal, InvalidArgument
from strata.observatory.store.native import decode, encode
from strata.observatory.store.table import TIME, Column, Table, words_of
from strata.types.shown import MARK

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)

# As a process of its own, for the engine has one folder per process: one question per line, answers as hex.
_ASK = """
import sys
from strata.observatory.store.embedded import Embedded
engine = Embedded(sys.argv[1], {})
for question in sys.stdin.read().split("\\0"):
    print(engine.query(question, {}).hex(), flush=True)
assert not {"pyarrow", "pandas", "clickhouse_connect"} & set(sys.modules)
"""
_DAY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_ANSWERS: dict[str, Any] = {
    "toUInt8(200)": 200,
    "toInt64(-5)": -5,
    "toUInt64(18446744073709551615)": 2**64 - 1,
    "toFloat32(0.5)": 0.5,
    "1e300 * 1e300": float("inf"),
    "true": True,
    "'Große 🦉'": "Große 🦉",
    "repeat('x', 300)": "x" * 300,
    "unhex('66ff')": f"{MARK}f\\xff",
    "toFixedString('ab', 2)": "ab",
    "NULL": None,
    "toNullable(7)": 7,
    "CAST(NULL AS Nullable(String))": None,
    "toLowCardinality('word')": "word",
    "CAST(NULL AS LowCardinality(Nullable(String)))": None,
    "CAST('w' AS LowCardinality(Nullable(String)))": "w",
    "['a', 'b']": ["a", "b"],
    "emptyArrayString()": [],
    "[]": [],
    "[[1], [2, 3]]": [[1], [2, 3]],
    "[toLowCardinality('a'), 'a']": ["a", "a"],
    "(1, 'a, )', [NULL])": [1, "a, )", [None]],
    "CAST((1, 'x') AS Tuple(a UInt8, `b c` LowCardinality(String)))": {"a": 1, "b c": "x"},
    "map('k', 1, 'l', 2)": {"k": 1, "l": 2},
    "toDate('2026-01-02')": date(2026, 1, 2),
    "toDate32('1950-01-02')": date(1950, 1, 2),
    "toDateTime('2026-01-02 03:04:05', 'UTC')": _DAY,
    "toDateTime64('2026-01-02 03:04:05', 0, 'UTC')": _DAY,
    "toDateTime64('2026-01-02 03:04:05.250', 3, 'UTC')": _DAY.replace(microsecond=250_000),
    "toDateTime64('2026-01-02 03:04:05.25', 4, 'UTC')": _DAY.replace(microsecond=250_000),
    "toDateTime64('2026-01-02 03:04:05.123456789', 9, 'UTC')": _DAY.replace(microsecond=123_456),
    "CAST('b' AS Enum8('a' = 1, 'b' = -2))": "b",
    "toDecimal64('1.50', 2)": Decimal("1.50"),
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')": "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
    "toIPv4('10.0.0.1')": "10.0.0.1",
    "toIPv6('::1')": "::1",
}


def _asked(folder: str, questions: list[str]) -> list[Table]:
    done = subprocess.run(
        [sys.executable, "-c", _ASK, folder], input="\0".join(questions), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [decode(bytes.fromhex(line)) for line in done.stdout.split("\n")[: len(questions)]]


def test_what_the_engine_writes_is_read_as_it_means_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every type by itself and as a column of three rows; an answer of many blocks, and of none."""
    folder = str(tmp_path_factory.mktemp("engine") / "metrics")
    singles = [f"SELECT {one} AS x FROM numbers(3)" for one in _ANSWERS]  # noqa: S608 - constants
    many = (
        "SELECT number AS n, toLowCardinality(toString(number % 7)) AS word, toString(n) AS text FROM numbers(300000)"
    )
    *answers, large, none = _asked(folder, [*singles, many, "SELECT 1 AS x WHERE 0"])
    for (question, expected), answer in zip(_ANSWERS.items(), answers, strict=True):
        assert answer["x"].to_list() == [expected] * 3, question
    assert large["n"].to_numpy().tolist() == list(range(300_000))
    assert large["word"].to_list() == [str(number % 7) for number in range(300_000)]
    assert set(large["word"].words or ()) == {"", *"0123456"}, "each word once"
    assert large["text"][299_999] == "299999"
    assert (none.num_rows, none.to_rows()) == (0, [])


@given(texts=st.lists(_TEXTS, min_size=1, max_size=20), data=st.data())
def test_what_is_written_is_read_back(texts: list[str], data: st.DataObject) -> None:
    count = len(texts)
    maybe = data.draw(st.lists(st.none() | st.integers(0, 2**64 - 1), min_size=count, max_size=count))
    lists = data.draw(st.lists(st.lists(_TEXTS, max_size=3), min_size=count, max_size=count))
    table = Table(
        {
            "text": Column("String", texts),
            "word": words_of(texts),
            "time": Column(TIME, np.arange(count, dtype=np.int64)),
            "value": Column.of(np.arange(count) / 4),
            "maybe": Column("Nullable(UInt64)", maybe),
            "lists": Column("Array(String)", lists),
        }
    )
    assert decode(encode(table)).to_rows() == table.to_rows()
    halves = table.take(slice(count // 2)), table.take(slice(count // 2, None))
    whole = b"".join(encode(half) for half in halves if half.num_rows)
    assert decode(whole).to_rows() == table.to_rows(), "blocks follow each other"


@pytest.mark.parametrize("num_words", [1, 256, 257, 65_536, 65_537])
def test_places_are_as_wide_as_the_words_need(num_words: int) -> None:
    words = [f"w{number}" for number in range(num_words)]
    assert decode(encode(Table({"word": words_of(words)})))["word"].to_list() == words


def test_columns_without_rows_keep_their_types() -> None:
    table = Table({"a": Column("Map(String, UInt8)", []), "b": Column("LowCardinality(String)", [])})
    assert {name: column.kind for name, column in decode(encode(table)).columns.items()} == {
        "a": "Map(String, UInt8)",
        "b": "LowCardinality(String)",
    }


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("Int128", -(2**127), -(2**127)),
        ("UInt256", 2**256 - 1, 2**256 - 1),
        ("Decimal(38, 3)", -(10**37) - 1, Decimal("-10000000000000000000000000000000000.001")),
    ],
)
def test_wide_numbers_of_a_server_are_read_whole(kind: str, number: int, expected: int | Decimal) -> None:
    """The light build of the engine does not make them."""
    size = 32 if kind.endswith("256") else 16
    raw = number.to_bytes(size, "little", signed=number < 0)
    assert decode(b"\x01\x01\x01x" + bytes([len(kind)]) + kind.encode() + raw).to_rows() == [{"x": expected}]


def test_of_two_columns_of_one_name_both_are_there() -> None:
    twice = encode(Table.of({"a": [1], "b": [2]})).replace(b"\x01b", b"\x01a")
    assert decode(twice).to_rows() == [{"a": 1, "a 2": 2}]


def test_what_is_cut_off_or_unknown_says_so() -> None:
    whole = encode(Table.of({"a": np.arange(100), "b": [str(number) for number in range(100)]}))
    for size in (3, 50, len(whole) - 1):
        with pytest.raises(Internal, match="cannot be read"):
            decode(whole[:size])
    strange = encode(Table({"a": Column("UInt8", [1])})).replace(b"\x05UInt8", b"\x07Dynamic")
    with pytest.raises(InvalidArgument, match="Dynamic"):
        decode(strange)
