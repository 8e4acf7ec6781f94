"""tables.md: the tables in ClickHouse, from the migrations in strata/observatory/store/schema.py."""

import re
from dataclasses import dataclass, field

from scripts.contract.markdown import code, table
from strata.observatory.store.schema import statements

__all__ = ["render"]

_PURPOSE = {
    "metric_points": "Every point of every series. Rows that others insert show up in the dashboard within one poll.",
    "logs": "What ranks print, and what Strata's own processes say.",
    "events": "What happened to runs, tasks and workers: alerts, deaths, ends.",
    "checkpoints": "Every checkpoint of a run and how it ended; the newest row per id counts.",
    "runs": "What runs say about themselves when they start, change and end.",
    "series_rollup": "One row per series once merged, kept by a materialized view; lists and last values read it.",
    "run_edits": "What people changed about a run by hand; it wins over what the run says.",
    "summaries": "Values of a run as a whole, set by its script; the newest per name counts, an empty one is removed.",
    "texts": "What was logged and is no number: texts, lists, references to files.",
    "dashboards": "What people arranged on the page: a row per save, of which the highest version of an id counts.",
    "attempts": "Where attempts of a run began: what earlier ones measured from that step on is superseded. The lowest "
    "step of an attempt counts; an empty metric stands for the whole run.",
}

_HEAD = """# Tables

Generated from `strata/observatory/store/schema.py` by `make reference`. They live in the database `CH_DATABASE`, on the
ClickHouse server `CH_HOST` or in the engine that is built in. The observatory creates and migrates them where it may;
the version is in `schema_version`. `metric_points` is public and never gets another column.
"""


@dataclass(slots=True)
class _Table:
    columns: list[tuple[str, str, str]] = field(default_factory=list)
    engine: str = ""
    order: str = ""


def render() -> str:
    tables = _tables()
    if tables.keys() != _PURPOSE.keys():
        raise ValueError(f"say what these tables are for, or drop them: {sorted(tables.keys() ^ _PURPOSE.keys())}")
    parts = [_HEAD]
    for name, found in tables.items():
        rows = [(code(column), code(kind), code(default)) for column, kind, default in found.columns]
        engine = f"Engine `{found.engine}`, ordered by `{found.order}`."
        parts.append(f"\n## {name}\n\n{_PURPOSE[name]} {engine}\n\n{table(('column', 'type', 'default'), rows)}")
    return "".join(parts)


def _tables() -> dict[str, _Table]:
    """The tables as all migrations leave them."""
    tables: dict[str, _Table] = {}
    for sql in (sql for _, parts in statements() for sql in parts):
        if made := re.search(
            r"CREATE TABLE IF NOT EXISTS \{db\}\.(\w+)\s*\((.*)\)\s*ENGINE = (.*?)\s*$", sql, re.DOTALL
        ):
            lines = (line.strip().rstrip(",") for line in made[2].splitlines())
            found = tables[made[1]] = _Table([_column(line) for line in lines if line and not line.startswith("INDEX")])
            found.engine = made[3].split("\n", 1)[0]
            found.order = re.search(r"ORDER BY (.*)", made[3])[1]  # type: ignore[index]  # every MergeTree has one
        elif added := re.search(r"ALTER TABLE \{db\}\.(\w+) ADD COLUMN IF NOT EXISTS (.*)", sql):
            tables[added[1]].columns.append(_column(added[2]))
    return tables


def _column(line: str) -> tuple[str, str, str]:
    name, _, rest = line.partition(" ")
    kind, _, default = re.sub(r"\s*CODEC\(.*\)$", "", rest.strip()).partition(" DEFAULT ")
    return name, kind, default
