"""Questions in SQL by people and programs: a connection of their own that can only read, bounded in time, memory and
rows by the engine itself, over three tables. What the engine would still allow (files by `file()`, other tables) is
refused by what its parser sees in the question.
"""

from functools import partial
from typing import Any

from strata.errors import Busy, InvalidArgument, StoreUnavailable, StrataError
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.engine import Engine
from strata.observatory.store.failures import SAID, to_error
from strata.observatory.store.native import decode, encode
from strata.observatory.store.sql import RUN_DETAILS, RUN_EDITS, RUNS, SUMMARIES
from strata.observatory.store.syntax import check_syntax, one_statement
from strata.observatory.store.table import Column, Table

__all__ = ["LIMITS", "MAX_ROWS", "Guest"]

MAX_ROWS = 10_000
LIMITS: dict[str, Any] = {
    "max_execution_time": 10,
    "timeout_overflow_mode": "throw",
    "max_memory_usage": 1 << 30,
    "max_temporary_data_on_disk_size_for_query": 1 << 30,
    "max_result_rows": MAX_ROWS + 1,
    "max_result_bytes": 64 << 20,
    "result_overflow_mode": "throw",
    "max_threads": 2,
    "function_range_max_elements_in_block": 10_000_000,  # inside of one call of a function nobody looks at the time
    "allow_introspection_functions": 0,
    "query_plan_remove_redundant_sorting": 0,  # the order of the question is the order of the answer
}

_POINTS = "SELECT event_time, run_id, host, rank, device, step, metric, value, unit, tags_json FROM {db}.metric_points"
_LOGS = """SELECT event_time, level, message, source, run_id, task_id, worker_id, host, rank, attempt, stream
FROM {db}.logs"""
# One row per run, as the page has it: what people wrote wins over what the script said.
_RUNS = f"""
SELECT every.run_id AS run_id, if(edits['name'] != '', edits['name'], said.name) AS name, said.project AS project,
       if(edits['group'] != '', edits['group'], said.group) AS `group`, said.job_type AS job_type,
       if(mapContains(edits, 'tags'), JSONExtract(edits['tags'], 'Array(String)'), said.tags) AS tags,
       if(edits['notes'] != '', edits['notes'], said.notes) AS notes, edits['archived'] != '' AS archived,
       said.task_id AS task_id, said.status AS status, said.reason AS reason, said.config_json AS config_json,
       if(summary.summary_json = '', '{{}}', summary.summary_json) AS summary_json,
       points.points AS num_points, points.top_step AS latest_step,
       fromUnixTimestamp64Milli(if(said.started_ms > 0, said.started_ms, points.first_ms), 'UTC') AS started_at,
       fromUnixTimestamp64Milli(greatest(points.last_ms, said.said_ms), 'UTC') AS last_at
FROM (SELECT run_id FROM {{db}}.series_rollup UNION DISTINCT SELECT run_id FROM {{db}}.runs) AS every
LEFT JOIN ({RUNS}) AS points ON points.run_id = every.run_id
LEFT JOIN ({RUN_DETAILS}) AS said ON said.run_id = every.run_id
LEFT JOIN (SELECT run_id, mapFromArrays(groupArray(toString(field)), groupArray(value)) AS edits
           FROM ({RUN_EDITS}) GROUP BY run_id) AS edited ON edited.run_id = every.run_id
LEFT JOIN (SELECT run_id, '{{' || arrayStringConcat(groupArray(toJSONString(name) || ':' || value_json), ',') || '}}'
           AS summary_json FROM ({SUMMARIES}) WHERE value_json != '' GROUP BY run_id) AS summary
       ON summary.run_id = every.run_id
WHERE NOT mapContains(edits, 'deleted')
"""  # noqa: S608 - constants only


class Guest:
    """Blocking, of one thread, as the engine below it. `limits` says why only the public table is there for us."""

    def __init__(self, config: StoreConfig, limits: str = "") -> None:
        self._engine = Engine(config, LIMITS)
        self._limits = limits
        tables = {"metric_points": _POINTS, "runs": _RUNS, "logs": _LOGS}
        named = ", ".join(f"{name} AS ({sql})" for name, sql in tables.items())
        self._tables = f"WITH {named}".replace("{db}", config.database)

    def ask(self, question: str) -> bytes:
        """At most MAX_ROWS + 1 rows, in the Native format: the last one says that there are more."""
        try:
            asked = f"SELECT * FROM (\n{one_statement(question)}\n)"  # noqa: S608 - it is checked, and may only read
            formatted = partial(self._engine.lines, f"EXPLAIN SYNTAX {asked}")
            named = check_syntax(self._engine.lines(f"EXPLAIN AST {asked}"), lambda: "\n".join(formatted()))
            self._check_there(named)
            whole = f"{self._tables} {asked} LIMIT {MAX_ROWS + 1}"
            return self._engine.query(whole, {}) or self._empty(whole)
        except StrataError:
            raise
        except Exception as error:
            raise _explained(to_error(error)) from None

    def _empty(self, question: str) -> bytes:
        """An answer without rows says nothing of its columns in this format; people want to see them."""
        columns = decode(self._engine.query(f"DESCRIBE ({question})", {})).to_rows()
        return encode(Table({column["name"]: Column(column["type"], []) for column in columns}))

    def _check_there(self, named: set[str]) -> None:
        missing = sorted(named & {"runs", "logs"}) if self._limits else []
        if missing:
            raise InvalidArgument(
                f"this store has no table {missing[0]}, only metric_points: {self._limits}",
                hint="Start Strata once with an account that may create tables (docs/deploying.md, ClickHouse).",
            )

    def close(self) -> None:
        self._engine.close()


def _explained(error: StrataError) -> StrataError:
    """Whatever the engine says about a question, the question is to blame, unless the engine is away."""
    if isinstance(error, Busy):
        return Busy(
            error.message, hint="Ask for less: a run, a metric, a range of steps. Limits: 10 s, 1 GiB, 10,000 rows."
        )
    if not isinstance(error, StoreUnavailable) and error.message.startswith(("DatabaseError: ", SAID)):
        return InvalidArgument(error.message.removeprefix("DatabaseError: "))
    return error
