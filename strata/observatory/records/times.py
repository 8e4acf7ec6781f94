"""Points in time as people and programs write them: Unix seconds, ISO 8601, or ClickHouse's own form."""

import math
import re
from datetime import UTC, datetime

from strata.errors import InvalidArgument

__all__ = ["parse_time", "to_ms", "to_s"]

_LAST_S = 10_413_791_999.0  # the end of 2299, where ClickHouse's DateTime64 ends
_LOST_PLUS = re.compile(r"(?<=[\d.]) (?=\d\d:?\d\d\Z)")  # a `+` in a URL that was not escaped arrives as a space
_FORMS = "Unix seconds (1715832000.5), ISO 8601 (2024-05-16T04:00:00Z) or ClickHouse's form (2024-05-16 04:00:00.000)"


def to_ms(seconds: float | None) -> int | None:
    """Unix milliseconds, as every time of an answer also has them."""
    return None if seconds is None else round(seconds * 1000)


def to_s(seconds: float | None) -> int | None:
    """Whole Unix seconds: those of the milliseconds, so that the two never disagree."""
    return None if seconds is None else round(seconds * 1000) // 1000


def parse_time(name: str, value: object) -> float:
    """Unix seconds. A time without a zone is UTC, as ClickHouse servers are. Raises InvalidArgument that names it."""
    seconds = _seconds(value)
    if seconds is None or not 0 <= seconds <= _LAST_S:
        hint = "Milliseconds? Divide by 1000." if seconds is not None and seconds > _LAST_S else f"Write {_FORMS}."
        raise InvalidArgument(f"{name} is {str(value)[:60]!r}, which is no time between 1970 and 2299", hint=hint)
    return seconds


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return _from_text(str(value).strip())
    return None if math.isnan(number) else number


def _from_text(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(_LOST_PLUS.sub("+", text) if "T" in text else text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
