"""The public form of records: plain JSON, field by field as their classes name them. Read by name, so that what a newer
release adds is passed over, and what an older one did not know has its default.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["Records", "from_plain", "json_parts", "shared", "to_plain"]

_TOGETHER = 50  # records that are written at once: 1 ms

_Record = TypeVar("_Record")


class _Field(NamedTuple):
    name: str
    read: Callable[[Any], Any]
    needed: bool


_known: dict[Any, tuple[_Field, ...]] = {}  # by class
_shared: dict[tuple[Any, Any], tuple[str, ...]] = {}  # names that two classes have


def to_plain(record: Any) -> dict[str, Any]:
    """A record as dicts, lists, text and numbers."""
    return {field.name: _plain(getattr(record, field.name)) for field in _fields(type(record))}


class Records(NamedTuple):
    """Records that will be written in their public form, by `plain`. They do not change any more."""

    items: tuple[Any, ...]
    plain: Callable[[Any], dict[str, Any]] = to_plain

    def written(self) -> list[dict[str, Any]]:
        return [self.plain(item) for item in self.items]


def json_parts(tree: Any) -> Iterator[str]:
    """A tree of dicts with `Records` in it as JSON, piece by piece: whoever asks for the next one may do something else
    meanwhile."""
    if isinstance(tree, Records):
        yield "["
        for start in range(0, len(tree.items), _TOGETHER):
            part = Records(tree.items[start : start + _TOGETHER], tree.plain)
            yield ("," if start else "") + _json(part.written())[1:-1]
        yield "]"
    elif isinstance(tree, dict):
        for number, (name, value) in enumerate(tree.items()):
            yield f"{',' if number else '{'}{_json(name)}:"
            yield from json_parts(value)
        yield "}" if tree else "{}"
    else:
        yield _json(tree)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def from_plain(cls: type[_Record], values: Mapping[str, Any]) -> _Record:
    """The inverse. Raises KeyError for a field that must be there, and whatever the record refuses."""
    given = {
        field.name: field.read(values[field.name]) for field in _fields(cls) if field.needed or field.name in values
    }
    return cls(**given)


def shared(cls: type[Any], source: object) -> dict[str, Any]:
    """What `source` says in fields that `cls` has by the same name: a request becomes an event, and an event a record,
    without a list of fields in between."""
    names = _shared.get((cls, type(source)))
    if names is None:
        known = tuple(field.name for field in _fields(cls) if hasattr(source, field.name))
        names = _shared[cls, type(source)] = known
    return {name: getattr(source, name) for name in names}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return to_plain(value) if is_dataclass(value) else value


def _fields(cls: Any) -> tuple[_Field, ...]:
    found = _known.get(cls)
    if found is None:
        hints = get_type_hints(cls)
        found = _known[cls] = tuple(
            _Field(item.name, _reader(hints[item.name]), item.default is MISSING and item.default_factory is MISSING)
            for item in fields(cls)
        )
    return found


def _reader(hint: Any) -> Callable[[Any], Any]:
    if get_origin(hint) is UnionType:
        records = [item for item in get_args(hint) if is_dataclass(item)]
        if records:  # a record or None
            inner = _reader(records[0])
            return lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        inner = _reader(get_args(hint)[0])
        return lambda items: tuple(inner(item) for item in items)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda values: from_plain(hint, values)
    return lambda value: value
