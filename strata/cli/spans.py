"""Spans of time as people write them: 30, 90s, 10m, 2h, 7d."""

import re

from strata.errors import InvalidArgument

__all__ = ["parse_span"]

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(s|m|h|d)?\Z")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_span(flag: str, text: str) -> float:
    """In seconds. Raises InvalidArgument that names the flag."""
    found = _SPAN.match(text.strip())
    if found is None or not float(found[1]):
        raise InvalidArgument(f"{flag} {text[:40]!r} is no time", hint="Write 30, 90s, 10m or 2h.")
    return float(found[1]) * _UNITS[found[2] or "s"]
