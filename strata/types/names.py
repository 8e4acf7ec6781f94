"""The one grammar for names that users choose: tasks, runs, datasets, workers, checkpoints, barriers.

A name that passes is safe as a path segment, an object key, a URL part and a label.
"""

import re
from functools import lru_cache

from strata.errors import InvalidArgument

__all__ = ["NAME_GRAMMAR", "check_metric", "check_name", "name_of"]

NAME_GRAMMAR = "a letter or digit, then up to 127 of letters, digits, '.', '_', '-'"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_METRIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@%+ -]{0,255}\Z")


@lru_cache(maxsize=16_384)  # a worker says its own name in every message
def check_name(kind: str, value: str) -> str:
    """Returns `value` when it is a valid name, else raises InvalidArgument that shows it, shortened."""
    if _NAME.match(value):
        return value
    raise InvalidArgument(f"{kind} {_shown(value)} is not a valid name", hint=f"Allowed: {NAME_GRAMMAR}.")


def name_of(text: str, otherwise: str) -> str:
    """What people call a file or a folder, as a name: with a dash for whatever no name may hold."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).lstrip("-._")[:128] or otherwise


def check_metric(value: object) -> str:
    """Metric names may also hold '/', ':', '@', '%', '+' and spaces, up to 256 characters."""
    if isinstance(value, str) and _METRIC.match(value):
        return value
    raise InvalidArgument(
        f"metric {_shown(value)} is not a valid metric name",
        hint="Allowed: letters, digits, '_' first; then also . : / @ % + - and spaces; 256 characters at most.",
    )


def _shown(value: object) -> str:
    if isinstance(value, str) and len(value) > 60:
        return f"{value[:60]!r}… ({len(value)} characters)"
    return repr(value)
