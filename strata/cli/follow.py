"""Following a log from a terminal: each line once, oldest first, also those that arrive a little late."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from strata.client.rest import Rest, query_of

__all__ = ["LogFollower", "print_lines"]

_OVERLAP_S = 5.0  # lines of other hosts may come in after newer ones
_PAGE = 1_000
_LEVEL_STYLES = {"error": "red", "warn": "yellow", "warning": "yellow", "debug": "dim"}


class LogFollower:
    """New lines since the last look. `query` are the filters of GET /api/logs."""

    def __init__(self, api: Rest, query: Mapping[str, Any]) -> None:
        self._api = api
        self._query = {key: value for key, value in query.items() if value is not None}
        self._newest = 0.0
        self._seen: set[str] = set()

    def first(self, limit: int) -> list[Mapping[str, Any]]:
        """The newest lines there are."""
        return self._take(self._api.get(f"/api/logs?{query_of({**self._query, 'limit': limit})}"))

    def more(self) -> list[Mapping[str, Any]]:
        """What came since."""
        after = max(0.0, self._newest - _OVERLAP_S)
        return self._take(self._api.get(f"/api/logs?{query_of({**self._query, 'limit': _PAGE, 'after': after})}"))

    def _take(self, rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        fresh = sorted((row for row in rows if row["id"] not in self._seen), key=lambda row: str(row["id"]))
        self._newest = max([self._newest, *(row["timestamp_ms"] / 1e3 for row in rows)])
        self._seen = {row["id"] for row in rows} | {row["id"] for row in fresh}
        return fresh


def print_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for row in rows:
        at = time.strftime("%H:%M:%S", time.localtime(row["timestamp"]))
        line = Text(f"{at} ", style="dim")
        line.append(f"{row.get('worker_id') or row['source']} ", style="cyan")
        line.append(row["message"], style=_LEVEL_STYLES.get(row["level"], ""))
        console.print(line)
