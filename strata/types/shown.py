"""What the dashboard can show of values that users choose.

A value is checked where it comes in. Where one goes out that an earlier release or another tool let in, it is replaced
by text, so that one bad value never breaks a whole list. JSON of up to 64 levels with valid Unicode is shown as it is.
Whole numbers beyond 2^53, which no browser holds exactly, are shown as their digits in a string, NaN and the infinities
as their names.
"""

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from strata.errors import InvalidArgument

__all__ = ["MARK", "MAX_DEPTH", "check_path", "check_shown", "check_text", "to_shown"]

MAX_DEPTH = 64
# Before text that stands for a value which cannot be shown as it was given.
MARK = "⚠ "
# A page has a few levels of its own around a user's value; the encoder itself ends at 254.
_MOST_DEPTH = 100
_EXACT = (1 << 53) - 1
_MAX_PATH = 4096
_MAX_RAW = 2_000


def check_shown(what: str, value: Any, max_depth: int = MAX_DEPTH) -> None:
    """Raises InvalidArgument that names the place when `value` is no JSON that can be shown as it is."""
    waiting = [(what, value, 0)]
    while waiting:
        where, item, depth = waiting.pop()
        if depth > max_depth:
            raise InvalidArgument(
                f"{what} is nested deeper than {max_depth} levels", hint="Flatten it, or give it as text."
            )
        if isinstance(item, str):
            check_text(where, item)
        elif isinstance(item, dict):
            for key, inner in item.items():
                check_text(f"a key of {where}", str(key))
                waiting.append((f"{where}.{str(key)[:40]}", inner, depth + 1))
        elif isinstance(item, list | tuple):
            waiting += [(f"{where}[{place}]", inner, depth + 1) for place, inner in enumerate(item)]
        elif not (item is None or isinstance(item, bool | int | float)):
            raise InvalidArgument(f"{where[:200]} is a {type(item).__name__}, which JSON does not know")


def check_text(what: str, text: str, limit: int | None = None) -> str:
    """Returns text that can be encoded; half of a surrogate pair cannot."""
    if limit is not None and len(text) > limit:
        raise InvalidArgument(f"{what} has {len(text)} characters, at most {limit} are allowed")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            bad = f"U+{ord(text[error.start]):04X}"
            raise InvalidArgument(
                f"{what[:200]} holds half a character ({bad} at {error.start})", hint="Give valid Unicode text."
            ) from None
    return text


def check_path(what: str, path: str) -> str:
    """Returns a path that a file system or a bucket could know."""
    check_text(what, path, _MAX_PATH)
    if "\x00" in path:
        raise InvalidArgument(f"{what} holds a NUL character, which no path can")
    return path


def to_shown(value: Any, depth: int = 0, as_is: type | None = None) -> Any:
    """The same value, with everything that the encoder or a browser cannot take as text. Records become dicts; what is
    `as_is` stays."""
    if isinstance(value, bool) or value is None or (as_is is not None and isinstance(value, as_is)):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else _digits(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, str):
        return _readable(value)
    if depth >= _MOST_DEPTH:
        return MARK + _raw(value)
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {_readable(str(key)): to_shown(inner, depth + 1, as_is) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_shown(inner, depth + 1, as_is) for inner in value]
    if hasattr(value, "tolist"):  # of numpy
        return to_shown(value.tolist(), depth)
    return MARK + _raw(value)


def _readable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return MARK + text.encode(errors="backslashreplace").decode()
    return text


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python does not write more than 4,300 digits
        return f"{MARK}a number of {number.bit_length()} bits"


def _raw(value: Any) -> str:
    try:
        text = json.dumps(value, default=repr)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= _MAX_RAW else f"{text[:_MAX_RAW]}… ({len(text)} characters)"
