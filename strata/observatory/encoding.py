"""JSON as it leaves this process: NaN and Inf become null, numpy arrays become lists."""

from typing import Any

import orjson

__all__ = ["encode"]

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def encode(value: Any) -> bytes:
    """Compact bytes without line breaks."""
    return orjson.dumps(value, option=_OPTIONS)
