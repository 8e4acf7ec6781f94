"""Messages and records that name the same things alike: one becomes the other, field by field."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import Message

__all__ = ["from_message", "to_message"]

_Message = TypeVar("_Message", bound=Message)
_Record = TypeVar("_Record")


class _Field(NamedTuple):
    """A field of a message that a record has, too: whether it may be unset, and as what a list or a map is read."""

    name: str
    optional: bool
    collect: Callable[[Any], Any] | None


_known: dict[tuple[Any, Any], tuple[_Field, ...]] = {}  # by message class and record class


def to_message(cls: type[_Message], record: object, **others: Any) -> _Message:
    """A message of what `record` says in fields of the same name, and of `others`, which go before."""
    told = {name: getattr(record, name) for name, _, _ in _shared(cls, type(record))}
    return cls(**(told | others if others else told))


def from_message(cls: type[_Record], message: Message, **others: Any) -> _Record:
    """A record of what `message` says in fields of the same name, and of `others`, which go before. An optional field
    that is not set is None; the record checks the rest itself."""
    told = {}
    for name, optional, collect in _shared(type(message), cls):
        value = None if optional and not message.HasField(name) else getattr(message, name)
        told[name] = collect(value) if collect else value
    return cls(**(told | others if others else told))


def _shared(message: Any, record: Any) -> tuple[_Field, ...]:
    found = _known.get((message, record))
    if found is None:
        named = message.DESCRIPTOR.fields_by_name
        shared = [named[field.name] for field in fields(record) if field.name in named]
        found = _known[message, record] = tuple(_Field(item.name, item.has_presence, _collect(item)) for item in shared)
    return found


def _collect(field: Any) -> Callable[[Any], Any] | None:
    if not field.is_repeated:
        return None
    return dict if field.message_type and field.message_type.GetOptions().map_entry else tuple
