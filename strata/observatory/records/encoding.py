"""JSON as it leaves this process: NaN and Inf become null, numpy arrays become lists."""

from typing import Any

import orjson

from strata.types.shown import to_shown

__all__ = ["encode", "encoded"]

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def encoded(body: bytes) -> Any:
    """Bytes that are JSON already, as a part of something that is yet to be encoded."""
    return orjson.Fragment(body)


def encode(value: Any) -> bytes:
    """Compact bytes without line breaks. A part that JSON cannot say is text with a mark; the rest stays as it is."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        return orjson.dumps(to_shown(value, as_is=orjson.Fragment), option=_OPTIONS)
