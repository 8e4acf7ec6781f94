"""The answer to a question in SQL."""

from dataclasses import dataclass
from typing import Any

__all__ = ["SqlAnswer", "SqlColumn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlColumn:
    """A column by its name and its type, as ClickHouse calls it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAnswer:
    """Rows in the question's order, each with a value per column. `truncated`: there are more."""

    columns: list[SqlColumn]
    rows: list[list[Any]]
    truncated: bool
    seconds: float
