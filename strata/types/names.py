"""The one grammar for names that users choose: tasks, runs, datasets, workers, checkpoints, barriers.

A name that passes is safe as a path segment, an object key, a URL part and a label.
"""

import re
from functools import lru_cache

from strata.errors import InvalidArgument

__all__ = ["NAME_GRAMMAR", "check_metric", "check_name"]

NAME_GRAMMAR = "a letter or digit, then up to 127 of letters, digits, '.', '_', '-'"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_METRIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@%+ -]{0,255}\Z")


@lru_cache(maxsize=16_384)  # a worker says its own name in every message
def check_name(kind: str, value: str) -> str:
    """Returns `value` when it is a valid name, else raises InvalidArgument that shows it, shortened."""
    if _NAME.match(value):
        return value
    raise InvalidArgument(f"{kind} {_shown(value)} is not a valid name", hint=f"Allowed: {NAME_GRAMMAR}.")


def check_metric(value: str) -> str:
    """Metric names may also hold '/', ':', '@', '%', '+' and spaces, up to 256 characters."""
    if _METRIC.match(value):
        return value
    raise InvalidArgument(
        f"metric {_shown(value)} is not a valid metric name",
        hint="Allowed: letters, digits, '_' first; then also . : / @ % + - and spaces; 256 characters at most.",
    )


def _shown(value: str) -> str:
    return repr(value) if len(value) <= 60 else f"{value[:60]!r}… ({len(value)} characters)"
