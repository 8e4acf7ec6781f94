"""Logs: the newest lines in memory for the live tail, all of them in the store for search. A line that was accepted is
found at once, also while the store is away or has not got it yet.
"""

import re
from collections import deque
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from strata.errors import InvalidArgument, StoreUnavailable
from strata.observatory.answers.logs import LogEntry
from strata.observatory.answers.stream import LogNews
from strata.observatory.batch.columns import Columns, log_entry
from strata.observatory.records.fill import fill
from strata.observatory.records.times import parse_time
from strata.observatory.store.base import Store
from strata.types.logs import LogLevel

__all__ = ["LogBook", "LogQuery"]

_TAIL = 20_000
_TAIL_BYTES = 64 << 20  # a line has up to 64 KB
_MAX_LIMIT = 10_000
# Of one tick, four times a second: more than anybody reads, and as much as a page can take beside all else.
_NEWS, _NEWS_BYTES = 1_000, 1 << 20
_RANKS = {level: rank for rank, level in enumerate(LogLevel)}
_CURSOR = re.compile(r"log_([0-9a-f]{11})[0-9a-f]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """What to look for; an empty text is none. `before` and `after` are log ids or times; `level` means that level and
    worse."""

    limit: int = 100
    level: str | None = None
    source: str | None = None
    task_id: str | None = None
    worker_id: str | None = None
    q: str | None = None
    before: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= _MAX_LIMIT:
            raise InvalidArgument(f"limit is {self.limit}, it must be between 1 and {_MAX_LIMIT}")
        for name in ("level", "source", "task_id", "worker_id", "q", "before", "after"):
            given = getattr(self, name) or None
            if given and name == "level":
                given = LogLevel.parse(given)
            elif given and name in ("before", "after"):
                given = _cursor(name, given)
            object.__setattr__(self, name, given)

    def levels(self) -> list[str]:
        ordered = list(LogLevel)
        return [str(level) for level in ordered[ordered.index(LogLevel(self.level)) :]] if self.level else []

    def matches(self, entry: LogEntry) -> bool:
        levels = self.levels()
        return (
            (not levels or entry.level in levels)
            and self.source in (None, entry.source)
            and self.task_id in (None, entry.task_id)
            and self.worker_id in (None, entry.worker_id)
            and (self.before is None or entry.id < self.before)
            and (self.after is None or entry.id > self.after)
            and (not self.q or self.q.lower() in entry.message.lower())
        )


class LogBook:
    """`take` and `drain` run on the loop; `search` asks the store only for what memory does not have."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tail: deque[LogEntry] = deque()
        self._tail_bytes = 0
        self._fresh: list[LogEntry] = []

    def take(self, columns: Columns) -> None:
        for position, line in enumerate(columns.logs):
            entry = log_entry(line, columns.batch_id, position)
            self._tail.append(entry)
            self._tail_bytes += len(entry.message)
            self._fresh.append(entry)
        while len(self._tail) > _TAIL or self._tail_bytes > _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft().message)

    def drain(self) -> LogNews:
        """Lines that no tick has published yet; of very many the worst, and of those the newest. The others are
        counted: a search finds them."""
        fresh, self._fresh = self._fresh, []
        shown = _most_telling(fresh)
        return LogNews(logs=shown, skipped=len(fresh) - len(shown))

    async def search(self, query: LogQuery) -> list[LogEntry]:
        """The newest `limit` matching lines, newest first."""
        recent = {entry.id: entry for entry in self._tail if query.matches(entry)}
        try:
            sql, parameters = _sql(query)
            for row in (await self._store.query(sql, parameters)).to_rows():
                if row["id"] not in recent:
                    recent[row["id"]] = fill(LogEntry, **row)
        except StoreUnavailable:
            if not recent and (query.q or query.before):
                raise  # a search that could not be made is no empty result; the plain tail is what memory has
        return sorted(recent.values(), key=lambda entry: entry.id, reverse=True)[: query.limit]


def _most_telling(lines: list[LogEntry]) -> list[LogEntry]:
    if len(lines) <= _NEWS and sum(len(line.message) for line in lines) <= _NEWS_BYTES:
        return lines
    worst_first = sorted(range(len(lines)), key=lambda place: (_RANKS[lines[place].level], place), reverse=True)
    sizes = accumulate(len(lines[place].message) for place in worst_first)
    chosen = [place for place, size in zip(worst_first[:_NEWS], sizes, strict=False) if size <= _NEWS_BYTES]
    return [lines[place] for place in sorted(chosen)]


def _sql(query: LogQuery) -> tuple[str, dict[str, Any]]:
    clauses: dict[str, tuple[str, Any]] = {}
    if query.level:
        clauses["levels"] = ("level IN {levels:Array(String)}", query.levels())
    for name in ("source", "task_id", "worker_id"):
        if getattr(query, name) is not None:
            clauses[name] = (f"{name} = {{{name}:String}}", getattr(query, name))
    if query.q:
        clauses["q"] = ("positionCaseInsensitiveUTF8(message, {q:String}) > 0", query.q)
    for name, sign in (("before", "<"), ("after", ">")):
        cursor = getattr(query, name)
        if cursor is not None:
            # The time makes use of the table's order; the id decides within the millisecond.
            clauses[name] = (f"id {sign} {{{name}:String}}", cursor)
            edge = f"event_time {sign}= fromUnixTimestamp64Milli({{{name}_ms:Int64}})"
            clauses[f"{name}_ms"] = (edge, int(cursor[4:15], 16))
    where = " AND ".join(clause for clause, _ in clauses.values()) or "1"
    sql = f"""
SELECT id, toUnixTimestamp64Milli(event_time) AS timestamp_ms, level, message, source, task_id, worker_id, rank, host,
       stream, attempt
FROM {{db}}.logs WHERE {where} ORDER BY event_time DESC, id DESC LIMIT {query.limit:d}
"""  # noqa: S608 - made of constants, values are parameters
    return sql, {name: value for name, (_, value) in clauses.items()}


def _cursor(name: str, value: str) -> str:
    """Ids sort by time, so a time becomes the id that lies just before it."""
    if _CURSOR.match(value):
        return value
    return f"log_{round(parse_time(name, value) * 1000):011x}"
