"""Answer records in tests that care about a few of their fields."""

from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["partly"]

T = TypeVar("T")


def partly(record: type[T], **given: Any) -> T:
    """A record of these fields; every other one is None."""
    names = [field.name for field in fields(record)]  # type: ignore[arg-type]  # of dataclasses only
    return record(**{**dict.fromkeys(names), **given})
