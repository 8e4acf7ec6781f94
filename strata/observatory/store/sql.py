"""The questions asked of ClickHouse. Every one is bounded: by the rollup, by buckets, or by a LIMIT."""

from collections.abc import Mapping, Sequence
from typing import Any

from strata.observatory.store.superseded import TURN, Which, point_rows
from strata.types.metrics import MAX_STEP, WORLDS

__all__ = [
    "DASHBOARD",
    "DASHBOARDS",
    "RUNS",
    "RUN_DETAILS",
    "RUN_EDITS",
    "SERIES",
    "SUMMARIES",
    "checkpoint_rows",
    "curves",
    "media_entries",
    "media_keys",
    "media_steps",
    "newest_series",
    "newest_steps",
    "points_of",
    "raw_points",
    "rolled_up",
    "series_of",
    "text_rows",
]

_KEY = "run_id, metric, host, rank, device"
# A million times the same name would be most of an answer: each word comes once. A join has taken that away.
_WORDS = ", ".join(f"toLowCardinality({name}) AS {name}" for name in ("run_id", "metric", "host"))
_KEY_WORDS = f"{_WORDS}, rank, device"
# Others may write any UInt64; what is beyond our own limit, which no page could show, is shown as the limit.
_STEP = f"least(step, {MAX_STEP})"

# One row per series; at 10 M points 13 ms (docs/research/metric-store.md).
SERIES = f"""
SELECT {_KEY}, anyLast(unit) AS unit, sum(num_points) AS points, sum(num_bad) AS bad,
       max(least(max_step, {MAX_STEP})) AS top_step, toUnixTimestamp64Milli(min(first_time)) AS first_ms,
       toUnixTimestamp64Milli(max(last_time)) AS last_ms, argMaxMerge(last_value) AS newest,
       min(min_value) AS lowest, max(max_value) AS highest
FROM {{db}}.series_rollup GROUP BY {_KEY} ORDER BY {_KEY}
"""  # noqa: S608 - constants only

RUNS = f"""
SELECT run_id, toUnixTimestamp64Milli(min(first_time)) AS first_ms, toUnixTimestamp64Milli(max(last_time)) AS last_ms,
       maxOrNullIf(least(max_step, {MAX_STEP}), NOT startsWith(metric, 'sys.')) AS top_step, sum(num_points) AS points,
       uniqExact(metric, host, rank, device) AS series
FROM {{db}}.series_rollup GROUP BY run_id ORDER BY last_ms DESC
"""  # noqa: S608 - constants only

RUN_DETAILS = """
SELECT run_id, argMaxIf(name, event_time, name != '') AS name, argMaxIf(project, event_time, project != '') AS project,
       argMaxIf(task_id, event_time, task_id != '') AS task_id,
       argMaxIf(config_json, event_time, config_json != '') AS config_json,
       argMaxIf(tags, event_time, notEmpty(tags)) AS tags, argMaxIf(notes, event_time, notes != '') AS notes,
       argMaxIf(`group`, event_time, `group` != '') AS `group`,
       argMaxIf(job_type, event_time, job_type != '') AS job_type,
       argMaxIf(status, (event_time, status != 'running'), status != '') AS status,
       argMaxIf(reason, (event_time, status != 'running'), status != '') AS reason,
       toUnixTimestamp64Milli(maxIf(event_time, status != '')) AS said_ms,
       toUnixTimestamp64Milli(minIf(started_at, started_at > toDateTime64(0, 3))) AS started_ms
FROM {db}.runs GROUP BY run_id
"""

SUMMARIES = """
SELECT run_id, name, argMax(value_json, event_time) AS value_json, toUnixTimestamp64Milli(max(event_time)) AS said_ms
FROM {db}.summaries GROUP BY run_id, name
"""

_HEAD = "id, version, project, name, author, num_panels, deleted, toUnixTimestamp64Milli(event_time) AS updated_at_ms"
DASHBOARDS = f"SELECT {_HEAD} FROM {{db}}.dashboards FINAL WHERE NOT deleted ORDER BY project, lower(name), id"  # noqa: S608 - constants
DASHBOARD = f"SELECT {_HEAD}, body FROM {{db}}.dashboards FINAL WHERE id = {{id:String}}"  # noqa: S608 - constants
RUN_EDITS = "SELECT run_id, field, argMax(value, event_time) AS value FROM {db}.run_edits GROUP BY run_id, field"


def series_of(runs: list[str], metrics: list[str] | None = None) -> tuple[str, dict[str, Any]]:
    """SERIES for some runs only, or for some metrics of them."""
    clause, parameters = _where({"runs": runs, "metrics": metrics})
    return SERIES.replace("GROUP BY", f"WHERE {clause} GROUP BY", 1), parameters


def newest_series(runs: list[str]) -> tuple[str, dict[str, Any]]:
    """SERIES of runs of which steps were done again, without what is superseded: the rollup counts that, too."""
    clause, parameters = _where({"runs": runs})
    sql = f"""
SELECT {_KEY}, anyLast(toString(p.unit)) AS unit, count() AS points, countIf(NOT isFinite(value)) AS bad,
       max({_STEP}) AS top_step, toUnixTimestamp64Milli(max(event_time)) AS last_ms,
       argMax(value, (step, event_time)) AS newest, min(if(isFinite(value), value, inf)) AS lowest,
       max(if(isFinite(value), value, -inf)) AS highest
FROM {point_rows(clause, "newest")} GROUP BY {_KEY} ORDER BY {_KEY}
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def newest_steps(run_id: str, metric: str, steps: int, which: Which = "all") -> tuple[str, dict[str, Any]]:
    """What every rank logged at the last steps of a metric, in order of arrival."""
    of = "run_id = {run:String} AND metric = {metric:String}"
    last = f"SELECT DISTINCT step FROM {{db}}.metric_points WHERE {of} ORDER BY step DESC LIMIT {steps:d}"  # noqa: S608 - constants
    sql = f"""
SELECT rank, {_STEP} AS step, value FROM {point_rows(f"{of} AND step IN ({last})", which)} ORDER BY event_time
"""  # noqa: S608 - made of constants, values are parameters
    return sql, {"run": run_id, "metric": metric}


def curves(where: Mapping[str, Any], buckets: int, which: Which = "all") -> tuple[str, dict[str, Any]]:
    """Series as buckets of equal count in order of step and time: extremes with their places, counts, newest point.
    What is superseded comes attempt by attempt.

    `where` may hold runs and metrics (lists), metric, rank, from_step, to_step, from_ms, to_ms.
    """
    clause, parameters = _where(where)
    key = f"{_KEY}, turn" if which == "superseded" else _KEY
    sql = f"""
SELECT {key}, bucket, any(series_unit) AS unit, count() AS n, countIf(NOT isFinite(value)) AS bad,
       minIf(value, isFinite(value)) AS vmin, maxIf(value, isFinite(value)) AS vmax,
       argMinIf(step, value, isFinite(value)) AS smin, argMaxIf(step, value, isFinite(value)) AS smax,
       argMinIf(ms, value, isFinite(value)) AS tmin, argMaxIf(ms, value, isFinite(value)) AS tmax,
       min(step) AS sfirst, min(ms) AS tfirst,
       argMax(value, place) AS vlast, argMax(step, place) AS slast, argMax(ms, place) AS tlast
FROM (
    SELECT {key}, {_STEP} AS step, value, toString(p.unit) AS series_unit, toUnixTimestamp64Milli(event_time) AS ms,
           row_number() OVER (PARTITION BY {key} ORDER BY step, event_time) AS place,
           count() OVER (PARTITION BY {key}) AS total,
           intDiv(place - 1, greatest(1, intDiv(total + {buckets:d} - 1, {buckets:d}))) AS bucket
    FROM {point_rows(clause, which)}
)
GROUP BY {key}, bucket ORDER BY {key}, bucket
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def rolled_up(where: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Which series `where` selects, whatever it says of steps and times, and how many points they have."""
    clause, parameters = _where({name: where.get(name) for name in ("runs", "metrics", "metric", "rank")})
    sql = f"""
SELECT {_KEY}, anyLast(unit) AS unit, sum(num_points) AS points
FROM {{db}}.series_rollup WHERE {clause} GROUP BY {_KEY} ORDER BY {_KEY}
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def points_of(
    where: Mapping[str, Any], which: Which = "all", *, numbers_only: bool = False
) -> tuple[str, dict[str, Any]]:
    """The same series as single points in any order, for fold.py, which makes the same buckets of them. Those of one
    series are read by one thread: it gives them in the table's order, and they need not be sorted again."""
    clause, parameters = _where(where)
    key = f"{_KEY_WORDS}, turn" if which == "superseded" else _KEY_WORDS
    sql = f"""
SELECT {"" if numbers_only else f"{key}, toLowCardinality(p.unit) AS unit, "}
       {_STEP} AS step, toUnixTimestamp64Milli(event_time) AS ms, value
FROM {point_rows(clause, which)}
{"SETTINGS max_threads = 1" if numbers_only and which == "all" else ""}
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def raw_points(
    where: Mapping[str, Any], limit: int, which: Which = "all", *, by_metric: bool = False
) -> tuple[str, dict[str, Any]]:
    """Rows as they are, oldest first; metric by metric if they are wanted so."""
    clause, parameters = _where(where)
    sql = f"""
SELECT {_KEY_WORDS}, toLowCardinality(p.unit) AS unit, step, toUnixTimestamp64Milli(event_time) AS ms, value,
       intDiv({TURN if which == "all" else "turn"}, {WORLDS}) AS attempt
FROM {point_rows(clause, which)} ORDER BY {"metric, " if by_metric else ""}event_time, step LIMIT {limit:d}
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def checkpoint_rows(run_id: str, which: Which) -> tuple[str, dict[str, Any]]:
    """What somebody else wrote about checkpoints of a run: the value is theirs, and so are the tags."""
    clause, parameters = _where({"runs": [run_id]})
    sql = f"""
SELECT metric, host, rank, device, {_STEP} AS step, value, toString(p.unit) AS unit, tags_json,
       toUnixTimestamp64Milli(event_time) AS event_time_ms
FROM {point_rows(f"{clause} AND startsWith(metric, 'checkpoint')", which)}
ORDER BY event_time DESC, step DESC, metric LIMIT 1000
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def text_rows(where: Mapping[str, Any], limit: int) -> tuple[str, dict[str, Any]]:
    """What a run logged that is no number, newest first."""
    clause, parameters = _where(where)
    sql = f"""
SELECT metric, host, rank, attempt, {_STEP} AS step, toUnixTimestamp64Milli(event_time) AS event_time_ms, kind, text
FROM {{db}}.texts WHERE {clause} ORDER BY event_time DESC, metric, rank LIMIT {limit:d}
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


def media_keys(run_id: str, search: str, limit: int) -> tuple[str, dict[str, Any]]:
    """The names under which a run logs what is no number, one row per kind."""
    sql = f"""
SELECT metric, kind, arraySort(groupUniqArray(64)(rank)) AS ranks, uniqExact({_STEP}) AS num_steps,
       min({_STEP}) AS first_step, max({_STEP}) AS last_step,
       toUnixTimestamp64Milli(max(event_time)) AS last_event_time_ms
FROM {{db}}.texts WHERE run_id = {{run_id:String}} AND positionCaseInsensitiveUTF8(metric, {{search:String}}) > 0
GROUP BY metric, kind ORDER BY metric, kind LIMIT {limit:d}
"""  # noqa: S608 - constants, and a number; values are parameters
    return sql, {"run_id": run_id, "search": search}


def media_steps(where: Mapping[str, Any], limit: int) -> tuple[str, dict[str, Any]]:
    clause, parameters = _where(where)
    sql = f"SELECT DISTINCT {_STEP} AS step FROM {{db}}.texts WHERE {clause} ORDER BY step LIMIT {limit:d}"  # noqa: S608 - as above
    return sql, parameters


def media_entries(where: Mapping[str, Any], steps: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """What was logged at these steps; of one that was done again, the newest."""
    clause, parameters = _where({**where, "steps": steps})
    newest = "(attempt, event_time)"
    sql = f"""
SELECT {_STEP} AS step, toUnixTimestamp64Milli(max(event_time)) AS event_time_ms, max(attempt) AS attempt,
       argMax(text, {newest}) AS text
FROM {{db}}.texts WHERE {clause} GROUP BY step ORDER BY step
"""  # noqa: S608 - clause is made of constants, values are parameters
    return sql, parameters


_CLAUSES = {
    "run_id": "run_id = {run_id:String}",
    "kind": "kind = {kind:String}",
    "steps": f"{_STEP} IN {{steps:Array(UInt64)}}",
    "runs": "run_id IN {runs:Array(String)}",
    "metrics": "metric IN {metrics:Array(String)}",
    "metric": "metric = {metric:String}",
    "host": "host = {host:String}",
    "rank": "rank = {rank:UInt32}",
    "device": "device = {device:UInt16}",
    "from_step": "step >= {from_step:UInt64}",
    "to_step": "step <= {to_step:UInt64}",
    "from_ms": "event_time >= fromUnixTimestamp64Milli({from_ms:Int64})",
    "to_ms": "event_time <= fromUnixTimestamp64Milli({to_ms:Int64})",
}


def _where(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    chosen = {name: value for name, value in given.items() if value is not None}
    return " AND ".join(_CLAUSES[name] for name in chosen) or "1", chosen
