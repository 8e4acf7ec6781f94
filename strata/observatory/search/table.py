"""The table of runs: which ones a query lets through, in which order, and the columns that somebody chose."""

from collections.abc import Callable, Sequence
from typing import Any

from strata.errors import InvalidArgument
from strata.observatory.answers.runs import RunInfo, RunTable
from strata.observatory.live.run_entry import RunEntry
from strata.observatory.live.summaries import ASPECTS
from strata.observatory.live.view import LiveView
from strata.observatory.search.match import is_known, matcher, order_of
from strata.observatory.search.query import names_in, parse

__all__ = ["RunSearch"]

_MAX_NAMES = 2_000
_MAX_COLUMNS = 50
# What is known of a run beyond config, summary and metrics, by the words that people use for it.
_FIELDS: dict[str, Callable[[str, RunEntry], Any]] = {
    "id": lambda run_id, _: run_id,
    "name": lambda run_id, run: run.label("name") or run_id,
    "project": lambda _, run: run.label("project"),
    "group": lambda _, run: run.label("group"),
    "job_type": lambda _, run: run.label("job_type"),
    "tag": lambda _, run: run.shown_tags or None,
    "notes": lambda _, run: run.label("notes"),
    "task": lambda _, run: run.label("task_id"),
    "archived": lambda _, run: "yes" if run.is_archived else "no",
    "step": lambda _, run: run.top_step,
    "points": lambda _, run: run.points,
    "started": lambda _, run: None if run.start_ms is None else run.start_ms / 1000,
    "duration": lambda _, run: _duration(run),
}
_ALIASES = {"tags": "tag", "status": "state", "run_id": "id", "task_id": "task"}


class RunSearch:
    """Reads the live view, a few fields of every run: docs/runs.md says what ten thousand take."""

    def __init__(self, live: LiveView) -> None:
        self._live = live

    def find(self, query: str, sort: str, *, descending: bool, limit: int | None = None) -> list[RunInfo]:
        """Runs without a value to sort by come last, whichever way it goes. Archived ones only if the query asks."""
        book, found = self._live.runs, self._order(query, sort, descending)[:limit]
        return [info for run_id in found if (info := book.info(run_id)) is not None]

    def table(self, query: str, sort: str, columns: Sequence[str], *, descending: bool, limit: int) -> RunTable:
        """The first `limit` of what `find` finds, with these columns."""
        if len(columns) > _MAX_COLUMNS:
            raise InvalidArgument(f"{len(columns)} columns are asked for, at most {_MAX_COLUMNS} are sent")
        found = self._order(query, sort, descending)
        shown = found[:limit]
        return RunTable(
            total=len(self._live.runs),
            matched=len(found),
            ids=shown,
            columns={name: list(map(self._values(name), shown)) for name in columns},
            names=self.names(),
        )

    def names(self) -> list[str]:
        """Everything that can be asked for beyond the fields, the names of people first."""
        live = self._live
        config = {f"config.{name}" for name in live.runs.config_names}
        said = {f"summary.{name}" for name in live.summaries.said_names()}
        metrics = (name for name in sorted(live.series.metrics()) if not name.startswith("sys."))
        every = [*sorted(config), *sorted(said), *(f"{name}.{aspect}" for name in metrics for aspect in ASPECTS)]
        return every[:_MAX_NAMES]

    def _order(self, query: str, sort: str, descending: bool) -> list[str]:
        """The runs that the query lets through: the newest first, or by what they are sorted by."""
        node, entries = parse(query), self._live.runs.entries()
        test = matcher(node, self._values, lambda run: _words(run, entries[run]))
        wants_archived = any(_field(name) == "archived" for name in names_in(node))
        newest = sorted(entries, key=lambda run: entries[run].start_ms or 0, reverse=True)
        found = [run for run in newest if (wants_archived or not entries[run].is_archived) and test(run)]
        if not sort:
            return found
        value = self._values(sort)
        keys = {run: order_of(value(run)) for run in found if is_known(value(run))}
        return [*sorted(keys, key=keys.__getitem__, reverse=descending), *(run for run in found if run not in keys)]

    def _values(self, key: str) -> Callable[[str], Any]:
        """A way to the value of `key`: a field, else a config value, else what a script set, else a metric."""
        entries, book, summaries = self._live.runs.entries(), self._live.runs, self._live.summaries
        field = _field(key)
        if field == "state":
            return lambda run: str(book.state_of(run).state)
        if field == "reason":
            return lambda run: book.state_of(run).reason or None
        if field in _FIELDS:
            read = _FIELDS[field]
            return lambda run: read(run, entries[run])
        kind, _, name = key.partition(".")
        if kind == "summary" and name:
            return lambda run: summaries.said_value(run, name)
        wanted = name if kind == "config" and name else key
        dotted, metric = wanted.replace("/", "."), _metric(key, self._live)

        def value(run: str) -> Any:
            config = entries[run].flat
            if wanted in config or dotted in config:
                return config.get(wanted, config.get(dotted))
            said = summaries.said_value(run, key)
            return metric.get(run) if said is None else said

        return value


def _metric(key: str, live: LiveView) -> dict[str, float]:
    """`loss` is its last value; `loss.min` is one of its aspects, unless a metric has that very name."""
    if live.series.of_metric(key):
        return live.summaries.column(key, "last")
    name, _, wanted = key.rpartition(".")
    aspect = next((one for one in ASPECTS if one == wanted), None)
    return live.summaries.column(name, aspect) if aspect else {}


def _field(key: str) -> str:
    word = key.lower()
    return _ALIASES.get(word, word)


def _words(run_id: str, run: RunEntry) -> str:
    parts = (run_id, *map(run.label, ("name", "notes", "group", "project", "job_type")), *run.shown_tags)
    return "\n".join(part for part in parts if part).lower()


def _duration(run: RunEntry) -> float | None:
    return None if run.start_ms is None or run.last_ms is None else (run.last_ms - run.start_ms) / 1000
