"""ClickHouse's own binary format, Native: what the engine and every server write and read fastest, and NumPy reads
without a copy. A block is a number of columns and of rows, then each column with its name, its type and its values.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from strata.errors import Internal, InvalidArgument
from strata.observatory.store.table import DTYPES, Column, Table
from strata.types.shown import MARK

__all__ = ["decode", "encode"]

_TICKS = {"Date": "<u2", "Date32": "<i4", "DateTime": "<u4", "DateTime64": "<i8", "Enum8": "<i1", "Enum16": "<i2"}
_WIDE = {"Int128": 16, "UInt128": 16, "Int256": 32, "UInt256": 32}
_DECIMALS = ((9, 4), (18, 8), (38, 16), (76, 32))  # digits, and the bytes that hold them
_MEMBERS = re.compile(r"'((?:[^'\\]|\\.)*)' = (-?\d+)")
_NAMED = re.compile(r"([A-Za-z_]\w*|`(?:[^`\\]|\\.)*`) (.+)", re.DOTALL)
_CODES = ("<u1", "<u2", "<u4", "<u8")
_SHARED_WORDS = 1  # the version of the only layout that words have
_OWN_WORDS = 3 << 9  # a block brings its words along
_SHORT = [bytes([size]) for size in range(128)]
_CUT_OFF = "it is cut off"


class _Bytes:
    """What is left of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        return self._at >= len(self._data)

    def number(self) -> int:
        """Seven bits in a byte, the lowest first."""
        found = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        if not count:
            return np.zeros(0, dtype)
        found: NDArray[Any] = np.frombuffer(self._data, dtype, count, self._at)
        self._at += found.nbytes
        return found

    def pieces(self, size: int, count: int) -> list[bytes]:
        start, self._at = self._at, self._at + size * count
        if self._at > len(self._data):
            raise IndexError(_CUT_OFF)
        return [self._data[place : place + size] for place in range(start, self._at, size)]

    def texts(self, count: int) -> list[str]:
        data, at, found = self._data, self._at, []
        for _ in range(count):
            size = data[at]
            at += 1
            if size > 127:
                self._at = at - 1
                size = self.number()
                at = self._at
            found.append(data[at : at + size])
            at += size
        self._at = at
        if at > len(data):
            raise IndexError(_CUT_OFF)
        return _readable(found)


def decode(*pieces: bytes) -> Table:
    """All blocks of an answer as one table. One without rows may have no columns either."""
    blocks = []
    for piece in pieces:
        left = _Bytes(piece)
        try:
            while not left.is_empty:
                blocks.append(_block(left))
        except (IndexError, ValueError) as error:
            raise Internal(f"an answer of {len(piece)} bytes cannot be read: {error}") from None
    full = [block for block in blocks if block.num_rows] or blocks[:1]
    if len(full) < 2:
        return full[0] if full else Table({})
    return Table({name: _joined([block[name] for block in full]) for name in full[0].columns})


def encode(table: Table) -> bytes:
    """One block. Knows what Strata writes: numbers, times, texts, words, lists of texts, and numbers that may be
    missing."""
    pieces: list[Any] = [_number(len(table.columns)), _number(table.num_rows)]
    for name, column in table.columns.items():
        pieces += [*_texts((name, column.kind)), *(_values(column) if len(column) else ())]
    return b"".join(pieces)


def _block(left: _Bytes) -> Table:
    num_columns, num_rows = left.number(), left.number()
    columns: dict[str, Column] = {}
    for _ in range(num_columns):
        name, kind = left.texts(2)
        name = name if name not in columns else f"{name} {len(columns) + 1}"  # of one name there may be two
        if num_rows:
            _skip_prefix(left, kind)
        columns[name] = _read(left, kind, num_rows) if num_rows else Column(kind, [])
    return Table(columns)


def _skip_prefix(left: _Bytes, kind: str) -> None:
    """Words, however deep inside of a type, say their layout before any value of the column."""
    name, inner = _parts(kind)
    if name == "LowCardinality":
        left.array("<u8", 1)
    elif name in ("Array", "Map", "Nullable", "SimpleAggregateFunction", "Tuple"):
        for one in inner:
            _skip_prefix(left, _field(one)[1])


def _read(left: _Bytes, kind: str, count: int) -> Column:
    name, inner = _parts(kind)
    if dtype := DTYPES.get(name) or _TICKS.get(name):
        found = left.array(dtype, count)
        return Column(kind, _members(kind, found)) if name.startswith("Enum") else Column(kind, found)
    match name:
        case "String":
            return Column(kind, left.texts(count))
        case "LowCardinality":
            return _read_words(left, kind, count)
        case "SimpleAggregateFunction":
            return _read(left, inner[-1], count)
        case "Nullable":
            missing = left.array("|b1", count).tolist()
            values = _read(left, inner[0], count).to_list()
            return Column(kind, [None if gone else value for gone, value in zip(missing, values, strict=True)])
        case "Array":
            return Column(kind, _lists(left, count, inner[0]))
        case "Map":
            return Column(kind, [dict(row) for row in _lists(left, count, f"Tuple({inner[0]}, {inner[1]})")])
        case "Tuple":
            return Column(kind, _tuples(left, [_field(one) for one in inner], count))
    return Column(kind, _read_odd(left, name, inner, count))


def _read_odd(left: _Bytes, name: str, inner: tuple[str, ...], count: int) -> list[Any]:
    """What only questions of people ask for."""
    match name:
        case "Nothing":
            return [None for _ in left.pieces(1, count)]
        case "FixedString":
            return _readable(left.pieces(int(inner[0]), count))
        case "UUID":
            halves = left.array("<u8", 2 * count).tolist()
            return [str(UUID(int=high << 64 | low)) for high, low in zip(halves[::2], halves[1::2], strict=True)]
        case "IPv4":
            return [str(IPv4Address(number)) for number in left.array("<u4", count).tolist()]
        case "IPv6":
            return [str(IPv6Address(raw)) for raw in left.pieces(16, count)]
        case "Decimal":
            digits, scale = (int(one) for one in inner)
            size = next(size for most, size in _DECIMALS if digits <= most)
            return [Decimal(f"{number}E-{scale}") for number in _wide(left, size, count, signed=True)]
    if name in _WIDE:
        return _wide(left, _WIDE[name], count, signed=name.startswith("Int"))
    raise InvalidArgument(
        f"a column of the type {name} cannot be read here", hint="Turn it into a text, for example with toString()."
    )


def _read_words(left: _Bytes, kind: str, count: int) -> Column:
    """Each word once, then a place for each row. Of words that may be missing the first stands for none."""
    if not count:
        return Column(kind, np.zeros(0, np.int64), [])
    inner = _parts(kind)[1][0]
    may_miss = inner.startswith("Nullable(")
    codes = _CODES[int(left.array("<u8", 1)[0]) & 255]
    words = _read(left, _parts(inner)[1][0] if may_miss else inner, int(left.array("<u8", 1)[0])).to_list()
    places = left.array(codes, int(left.array("<u8", 1)[0]))
    return Column(kind, places, [None, *words[1:]] if may_miss else words)


def _lists(left: _Bytes, count: int, inner: str) -> list[Any]:
    ends = left.array("<u8", count).tolist()
    values = _read(left, inner, ends[-1] if ends else 0).to_list()
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _tuples(left: _Bytes, fields: list[tuple[str, str]], count: int) -> list[Any]:
    """As dicts where their places have names."""
    columns = [_read(left, kind, count).to_list() for _, kind in fields]
    rows = zip(*columns, strict=True) if columns else [()] * count
    names = [name for name, _ in fields]
    return [dict(zip(names, row, strict=True)) if all(names) and names else list(row) for row in rows]


def _wide(left: _Bytes, size: int, count: int, *, signed: bool) -> list[int]:
    return [int.from_bytes(raw, "little", signed=signed) for raw in left.pieces(size, count)]


def _members(kind: str, found: NDArray[Any]) -> list[str]:
    names = {int(number): name.replace("\\'", "'") for name, number in _MEMBERS.findall(kind)}
    return [names.get(number, str(number)) for number in found.tolist()]


def _joined(parts: list[Column]) -> Column:
    first = parts[0]
    if first.words is not None:
        known: dict[Any, int] = {}
        places = []
        for part in parts:
            codes = np.array([known.setdefault(word, len(known)) for word in part.words or ()], np.int64)
            places.append(codes[part.values])
        return Column(first.kind, np.concatenate(places), list(known))
    if isinstance(first.values, list):
        return Column(first.kind, [value for part in parts for value in part.values])
    return Column(first.kind, np.concatenate([np.asarray(part.values) for part in parts]))


@lru_cache(maxsize=1_000)
def _parts(kind: str) -> tuple[str, tuple[str, ...]]:
    """`Map(String, Array(UInt8))` as its name and what stands between the outer brackets."""
    name, _, rest = kind.partition("(")
    inner, depth, quoted, start = [], 0, "", 0
    rest = rest.removesuffix(")")
    for place, sign in enumerate(rest):
        if quoted:
            quoted = "" if sign == quoted and rest[place - 1] != "\\" else quoted
        elif sign in "'`":
            quoted = sign
        elif sign == "," and depth == 0:
            inner.append(rest[start:place].strip())
            start = place + 1
        else:
            depth += (sign == "(") - (sign == ")")
    if rest:
        inner.append(rest[start:].strip())
    return name, tuple(inner)


def _field(inner: str) -> tuple[str, str]:
    """`a UInt8`, a place of a tuple, as its name and its type; most have no name."""
    found = _NAMED.fullmatch(inner)
    return (found[1].strip("`"), found[2]) if found else ("", inner)


def _readable(raws: list[bytes]) -> list[str]:
    """ClickHouse's String holds any bytes; those that are no UTF-8 become their escapes after the mark."""
    try:
        return [raw.decode() for raw in raws]
    except UnicodeDecodeError:
        return [_text(raw) for raw in raws]


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return MARK + raw.decode(errors="backslashreplace")


def _values(column: Column) -> list[Any]:
    if column.words is not None:
        return _words(np.asarray(column.values), column.words)
    name, inner = _parts(column.kind)
    values = column.values
    if name == "Nullable":
        missing = np.array([value is None for value in values], bool)
        return [missing, *_values(Column(inner[0], [0 if value is None else value for value in values]))]
    if name == "Array":
        ends = np.cumsum([len(value) for value in values], dtype="<u8")
        return [ends, *_values(Column(inner[0], [one for value in values for one in value]))]
    if name == "String":
        return _texts(values)
    return [np.ascontiguousarray(values, DTYPES.get(name) or _TICKS[name])]


def _words(places: NDArray[Any], words: list[str]) -> list[Any]:
    width = 0 if len(words) <= 1 << 8 else 1 if len(words) <= 1 << 16 else 2
    sizes = (np.array([number], "<u8") for number in (_SHARED_WORDS, _OWN_WORDS | width, len(words), len(places)))
    version, layout, num_words, num_places = sizes
    return [version, layout, num_words, *_texts(words), num_places, np.ascontiguousarray(places, _CODES[width])]


def _texts(texts: Iterable[str]) -> list[bytes]:
    pieces: list[bytes] = []
    for text in texts:
        raw = text.encode()
        pieces += (_SHORT[len(raw)] if len(raw) < 128 else _number(len(raw)), raw)
    return pieces


def _number(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
