"""Rows on their way to and from the store, column by column: numbers as arrays, words as places in a list of them,
everything else as a list.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DTYPES", "TIME", "WORDS", "Column", "Rows", "Table", "words_of"]

TIME = "DateTime64(3)"
WORDS = "LowCardinality(String)"
DTYPES = {f"{sign}Int{8 * size}": f"<{sign[:1].lower() or 'i'}{size}" for sign in ("", "U") for size in (1, 2, 4, 8)}
DTYPES |= {"Float32": "<f4", "Float64": "<f8", "Bool": "|b1"}
_KINDS = {np.dtype(name): kind for kind, name in DTYPES.items()}
_KINDS_OF = {str: "String", bool: "Bool", int: "Int64", float: "Float64"}
_DAYS = ("Date", "Date32")
_PRECISION = re.compile(r"DateTime64\((\d)")
_UNITS = ("s", "ms", "ms", "ms", "us", "us", "us")  # of each precision the next finer one that NumPy has

Rows = slice | NDArray[np.bool_] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is the type as ClickHouse calls it. Where there are `words`, `values` are places among them."""

    kind: str
    values: NDArray[Any] | list[Any]
    words: list[Any] | None = None

    @classmethod
    def of(cls, values: "Column | NDArray[Any] | Sequence[Any]") -> "Column":
        """Of numbers or texts, whose kind is that of the first that is there."""
        if isinstance(values, Column):
            return values
        if isinstance(values, np.ndarray):
            return cls(_KINDS[values.dtype], values)
        given = list(values)
        kind = _KINDS_OF.get(next((type(one) for one in given if one is not None), type(None)), "")
        return cls(kind, given)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        """One value, as Python has it."""
        return self.take(slice(row, row + 1)).to_list()[0]

    def take(self, rows: Rows) -> "Column":
        if isinstance(self.values, np.ndarray):
            return Column(self.kind, self.values[rows], self.words)
        if isinstance(rows, slice):
            return Column(self.kind, self.values[rows], self.words)
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Column(self.kind, [self.values[row] for row in chosen.tolist()], self.words)

    def to_numpy(self) -> NDArray[Any]:
        """Numbers as they are; of words, and of what is no number, objects."""
        if isinstance(self.values, np.ndarray) and self.words is None:
            return self.values
        return np.array(self.to_list())

    def to_list(self) -> list[Any]:
        if self.words is not None:
            words = self.words
            return [words[place] for place in np.asarray(self.values).tolist()]
        if isinstance(self.values, list):
            return self.values
        if self.kind.startswith("Date"):
            return _times(self.kind, self.values)
        found: list[Any] = self.values.tolist()
        return found


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, by name."""

    columns: dict[str, Column]

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> "Table":
        return cls({name: Column.of(values) for name, values in columns.items()})

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "Table":
        return cls.of({name: [row[name] for row in rows] for name in (rows[0] if rows else ())})

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def take(self, rows: Rows) -> "Table":
        return Table({name: column.take(rows) for name, column in self.columns.items()})

    def only(self, names: Iterable[str]) -> "Table":
        return Table({name: self.columns[name] for name in names})

    def to_rows(self) -> list[dict[str, Any]]:
        names = tuple(self.columns)
        lists = (column.to_list() for column in self.columns.values())
        return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def words_of(texts: Iterable[str], places: NDArray[np.int64] | None = None) -> Column:
    """Texts of which many are the same, each word once; with `places`, the text that each of them names."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    return Column(WORDS, codes if places is None else codes[places], list(known))


def _times(kind: str, values: NDArray[Any]) -> list[datetime | date | None]:
    """None where the calendar ends."""
    if kind in _DAYS:
        days: list[Any] = values.astype("datetime64[D]").tolist()
        return [day if isinstance(day, date) else None for day in days]
    found = _PRECISION.match(kind)
    precision, ticks = int(found[1]) if found else 0, values.astype(np.int64)
    if precision > len(_UNITS) - 1:
        ticks, precision = ticks // 10 ** (precision - 6), 6
    unit = _UNITS[precision]
    ticks = ticks * 10 ** ({"s": 0, "ms": 3, "us": 6}[unit] - precision)
    moments: list[Any] = ticks.astype(f"datetime64[{unit}]").tolist()
    return [at.replace(tzinfo=UTC) if isinstance(at, datetime) else None for at in moments]
