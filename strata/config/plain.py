"""Settings whose values need no judging: a port in digits, a folder, a name. A training script and most servers have no
others, and start without pydantic.

Nothing is refused here. Whatever is not plainly good is left to judge.py, which has the last word and the sentence for
it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import Field
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from strata.config.settings import SETTINGS, Secret, Settings
from strata.config.sources import dotenv_variables, toml_values
from strata.config.variables import variables

__all__ = ["read_plainly"]

_WHOLE = re.compile(r"(?:0|[1-9][0-9]{0,14})\Z")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?\Z")
_LARGE = 1e15  # a float holds every whole number below it
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


class _NotPlain(Exception):
    """Somebody else has to look at it."""


def read_plainly(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Settings | None:
    """The settings, or None where a value has to be judged. Flags win over the environment, that over `.env`, and that
    over strata.toml."""
    told: dict[str, Any] = toml_values()
    if not flags.keys() | told.keys() <= SETTINGS.keys():
        return None
    spellings = {name: variables(name) for name in SETTINGS}
    known = {one.lower(): one for names in spellings.values() for one in names}
    for layer in (dotenv_variables(), environ):  # where an empty variable is none
        if any(known.get(name.lower(), name) != name for name in layer):
            return None  # they are read in any case of letters
        told |= {name: layer[one] for name, names in spellings.items() for one in reversed(names) if layer.get(one)}
    try:
        values = {name: _read(SETTINGS[name], value) for name, value in {**told, **flags}.items()}
    except _NotPlain:
        return None
    return Settings(**values, given=frozenset(values))


def _read(field: Field[Any], value: Any) -> Any:
    if "read" in field.metadata or "pattern" in field.metadata:
        raise _NotPlain
    kind = _kind(field)
    read = _READERS.get(Literal if get_origin(kind) is Literal else kind)
    if read is None:
        raise _NotPlain
    return read(value, field)


def _kind(field: Field[Any]) -> Any:
    kinds = [one for one in get_args(field.type) if one is not type(None)]
    return kinds[0] if isinstance(field.type, UnionType) else field.type


def _text(value: Any, field: Field[Any]) -> str:
    try:
        if type(value) is not str:
            raise _NotPlain
        value.encode()  # half of a surrogate pair is no text
        return field.metadata.get("check", str)(value)  # type: ignore[no-any-return]  # text in, text out
    except ValueError:
        raise _NotPlain from None


def _path(value: Any, field: Field[Any]) -> Path:
    text = _text(str(value) if isinstance(value, Path) else value, field)
    if not text:
        raise _NotPlain
    return Path(text)


def _number(pattern: re.Pattern[str], *kinds: type) -> Callable[[Any, Field[Any]], Any]:
    def read(value: Any, field: Field[Any]) -> Any:
        if type(value) is str and pattern.match(value):
            value = kinds[0](value)
        if type(value) not in kinds or not abs(value) < _LARGE:
            raise _NotPlain
        allowed = field.metadata
        inside = allowed.get("ge", value) <= value <= allowed.get("le", value) and value > allowed.get("gt", value - 1)
        if not inside:
            raise _NotPlain
        return kinds[0](value)

    return read


def _bool(value: Any, field: Field[Any]) -> bool:
    if type(value) is bool:
        return value
    if type(value) is not str or value not in _BOOLS:
        raise _NotPlain
    return _BOOLS[value]


def _word(value: Any, field: Field[Any]) -> str:
    if value not in get_args(_kind(field)):
        raise _NotPlain
    return str(value)


def _commands(value: Any, field: Field[Any]) -> dict[str, list[str]]:
    if type(value) is not dict or any(type(words) is not list for words in value.values()):
        raise _NotPlain
    return {_text(name, field): [_text(word, field) for word in words] for name, words in value.items()}


_READERS: Mapping[Any, Callable[[Any, Field[Any]], Any]] = {
    str: _text,
    Path: _path,
    Secret: lambda value, field: Secret(_text(value, field)),
    int: _number(_WHOLE, int),
    float: _number(_NUMBER, float, int),
    bool: _bool,
    Literal: _word,
    dict[str, list[str]]: _commands,
}
