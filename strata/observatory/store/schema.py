"""The tables, created where rights allow and migrated by version. metric_points is exactly the public one: rows by
anybody else are welcome, and nothing here adds a column to it.
"""

from collections.abc import Callable
from typing import Any

from strata.errors import InvalidConfig
from strata.observatory.store.ddl import on_cluster

__all__ = ["NO_ATTEMPTS", "RAW_ROLLUP", "ensure_schema", "has_points", "set_retention", "statements"]

# Blocks whose ids are remembered: a retry within the last so many inserts is recognised by its token. Only in tables
# that nobody else writes: an insert without a token is known by its content there, and the second of two equal ones of
# a foreign writer would be lost.
_WINDOW = 1000

_METRIC_POINTS = """
CREATE TABLE IF NOT EXISTS {db}.metric_points
(
    event_time DateTime64(3) DEFAULT now64(3),
    run_id     LowCardinality(String),
    host       LowCardinality(String) DEFAULT '',
    rank       UInt32 DEFAULT 0,
    device     UInt16 DEFAULT 65535,
    step       UInt64 DEFAULT 0,
    metric     LowCardinality(String),
    value      Float64,
    unit       LowCardinality(String) DEFAULT '',
    tags_json  String DEFAULT ''
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, metric, host, rank, device, step, event_time)
"""

# One row per series once merged: what the runs list, the poll and last values read instead of the raw table.
_ROLLUP = f"""
CREATE TABLE IF NOT EXISTS {{db}}.series_rollup
(
    run_id     LowCardinality(String),
    metric     LowCardinality(String),
    host       LowCardinality(String),
    rank       UInt32,
    device     UInt16,
    unit       SimpleAggregateFunction(anyLast, String),
    num_points SimpleAggregateFunction(sum, UInt64),
    num_bad    SimpleAggregateFunction(sum, UInt64),
    min_step   SimpleAggregateFunction(min, UInt64),
    max_step   SimpleAggregateFunction(max, UInt64),
    first_time SimpleAggregateFunction(min, DateTime64(3)),
    last_time  SimpleAggregateFunction(max, DateTime64(3)),
    last_value AggregateFunction(argMax, Float64, Tuple(UInt64, DateTime64(3)))
)
ENGINE = AggregatingMergeTree
ORDER BY (run_id, metric, host, rank, device)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

_ROLLUP_SELECT = """
SELECT run_id, metric, host, rank, device, anyLast(toString(p.unit)) AS unit, count() AS num_points,
       countIf(NOT isFinite(p.value)) AS num_bad, min(p.step) AS min_step, max(p.step) AS max_step,
       min(p.event_time) AS first_time, max(p.event_time) AS last_time,
       argMaxState(p.value, (p.step, p.event_time)) AS last_value
FROM {db}.metric_points AS p GROUP BY run_id, metric, host, rank, device
"""

# The same with the extremes, which came later: infinities stand for a series without any finite value.
_EXTREMES = {"min": "inf", "max": "-inf"}
_ROLLUP_WITH_EXTREMES = _ROLLUP_SELECT.replace(
    "\nFROM",
    ",\n       min(if(isFinite(p.value), p.value, inf)) AS min_value,"
    " max(if(isFinite(p.value), p.value, -inf)) AS max_value\nFROM",
)
# Rows that the rollup had counted before: they bring their extremes and count nothing.
_EXTREMES_OF_OLD = """
INSERT INTO {db}.series_rollup
SELECT run_id, metric, host, rank, device, anyLast(toString(p.unit)) AS unit, 0 AS num_points, 0 AS num_bad,
       min(p.step) AS min_step, max(p.step) AS max_step, min(p.event_time) AS first_time,
       max(p.event_time) AS last_time, argMaxStateIf(p.value, (p.step, p.event_time), 0) AS last_value,
       min(if(isFinite(p.value), p.value, inf)) AS min_value, max(if(isFinite(p.value), p.value, -inf)) AS max_value
FROM {db}.metric_points AS p GROUP BY run_id, metric, host, rank, device
"""

# What the rollup would hold, from the raw table: for a server on which we may only read. Right, but it scans.
RAW_ROLLUP = f"({_ROLLUP_WITH_EXTREMES.strip()})"

_VIEW = "{db}.series_rollup_mv TO {db}.series_rollup"

# Takes rows that are in metric_points and that the rollup has missed, because a crash came between the two.
_MISSED = "CREATE TABLE IF NOT EXISTS {db}.rollup_missed AS {db}.metric_points ENGINE = Null"
_MISSED_VIEW = "{db}.rollup_missed_mv TO {db}.series_rollup"

_LOGS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.logs
(
    event_time DateTime64(3),
    id         String,
    sequence   UInt64,
    level      LowCardinality(String),
    message    String CODEC(ZSTD(1)),
    source     LowCardinality(String),
    run_id     LowCardinality(String),
    task_id    LowCardinality(String),
    worker_id  LowCardinality(String),
    host       LowCardinality(String),
    rank       UInt32,
    attempt    UInt32,
    stream     LowCardinality(String),
    INDEX task task_id TYPE set(64) GRANULARITY 4,
    INDEX words message TYPE ngrambf_v1(4, 16384, 2, 0) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (event_time, id)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

_EVENTS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.events
(
    event_time DateTime64(3),
    id         String,
    kind       LowCardinality(String),
    severity   LowCardinality(String),
    message    String,
    run_id     LowCardinality(String),
    task_id    LowCardinality(String),
    worker_id  LowCardinality(String),
    attempt    UInt32,
    rank       Nullable(UInt32),
    step       Nullable(UInt64)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (event_time, id)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

_CHECKPOINTS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.checkpoints
(
    event_time DateTime64(3),
    id         String,
    run_id     LowCardinality(String),
    attempt    UInt32,
    rank       UInt32,
    worker_id  LowCardinality(String),
    step       UInt64,
    epoch      UInt64,
    path       String,
    size_bytes UInt64,
    duration_s Nullable(Float64),
    status     LowCardinality(String),
    reason     String
)
ENGINE = ReplacingMergeTree(event_time)
ORDER BY (run_id, step, id)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

_RUNS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.runs
(
    run_id      String,
    attempt     UInt32,
    rank        UInt32,
    step        UInt64,
    event_time  DateTime64(3),
    project     String,
    name        String,
    task_id     String,
    config_json String,
    status      LowCardinality(String),
    started_at  DateTime64(3)
)
ENGINE = MergeTree
ORDER BY (run_id, event_time)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

# What people changed by hand, which wins over what a run says of itself: the newest value per field.
_RUN_EDITS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.run_edits
(
    run_id     String,
    field      LowCardinality(String),
    value      String,
    event_time DateTime64(3)
)
ENGINE = ReplacingMergeTree(event_time)
ORDER BY (run_id, field)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

# An attempt began at a step: what earlier attempts measured there or later is superseded. An empty metric: of the whole
# run; no step: nobody knew yet.
_ATTEMPTS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.attempts
(
    run_id     LowCardinality(String),
    metric     LowCardinality(String),
    rank       UInt32,
    device     UInt16,
    attempt    UInt32,
    world      UInt32,
    step       Nullable(UInt64),
    event_time DateTime64(3)
)
ENGINE = MergeTree
ORDER BY (run_id, metric, rank, device, attempt, world)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

# What scripts say of a run as a whole: the newest value per name. An empty one was removed.
_SUMMARIES = f"""
CREATE TABLE IF NOT EXISTS {{db}}.summaries
(
    run_id     String,
    name       String,
    value_json String,
    event_time DateTime64(3)
)
ENGINE = ReplacingMergeTree(event_time)
ORDER BY (run_id, name)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

# What was logged and is no number.
_TEXTS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.texts
(
    event_time DateTime64(3),
    run_id     LowCardinality(String),
    metric     LowCardinality(String),
    host       LowCardinality(String),
    rank       UInt32,
    attempt    UInt32,
    step       UInt64,
    kind       LowCardinality(String),
    text       String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, metric, rank, step, event_time)
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

# What people arranged on the page: a row per saved version, of which the newest counts.
_DASHBOARDS = f"""
CREATE TABLE IF NOT EXISTS {{db}}.dashboards
(
    id         String,
    version    UInt64,
    project    String,
    name       String,
    author     String,
    num_panels UInt32,
    body       String CODEC(ZSTD(1)),
    deleted    UInt8,
    event_time DateTime64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY id
SETTINGS non_replicated_deduplication_window = {_WINDOW}
"""

# The same as _ATTEMPTS, where we may not create it.
NO_ATTEMPTS = """(SELECT '' AS run_id, '' AS metric, toUInt32(0) AS rank, toUInt16(0) AS device, toUInt32(0) AS attempt,
toUInt32(0) AS world, CAST(NULL AS Nullable(UInt64)) AS step, toDateTime64(0, 3) AS event_time WHERE 0)"""

_VERSION = """
CREATE TABLE IF NOT EXISTS {db}.schema_version (version UInt32, applied_at DateTime64(3) DEFAULT now64(3))
ENGINE = MergeTree ORDER BY version
"""

_LAST_SECOND = 2**32 - 1  # of a DateTime
_WITH_TTL = ("metric_points", "logs", "events", "texts")


def statements() -> list[tuple[int, list[str]]]:
    """Every migration: its version and its statements, oldest first. Append; never edit one that was released."""
    return [
        (
            1,
            [
                _METRIC_POINTS,
                f"ALTER TABLE {{db}}.metric_points MODIFY SETTING non_replicated_deduplication_window = {_WINDOW}",
                _LOGS,
                _EVENTS,
                _CHECKPOINTS,
                _RUNS,
                _ROLLUP,
                # Rows that were there before us are counted once, then the view counts every new one.
                "TRUNCATE TABLE {db}.series_rollup",
                f"INSERT INTO {{db}}.series_rollup {_ROLLUP_SELECT}",
                f"CREATE MATERIALIZED VIEW IF NOT EXISTS {_VIEW} AS {_ROLLUP_SELECT}",
            ],
        ),
        (2, [_RUN_EDITS]),
        (3, ["ALTER TABLE {db}.runs ADD COLUMN IF NOT EXISTS reason String DEFAULT ''"]),
        (
            4,
            [
                "ALTER TABLE {db}.metric_points MODIFY SETTING non_replicated_deduplication_window = 0",
                "ALTER TABLE {db}.series_rollup MODIFY SETTING non_replicated_deduplication_window = 0",
                _MISSED,
                f"CREATE MATERIALIZED VIEW IF NOT EXISTS {_MISSED_VIEW} AS "
                + _ROLLUP_SELECT.replace("metric_points", "rollup_missed"),
            ],
        ),
        (5, [_ATTEMPTS]),
        (
            6,
            [
                *(
                    f"ALTER TABLE {{db}}.series_rollup ADD COLUMN IF NOT EXISTS {end}_value "
                    f"SimpleAggregateFunction({end}, Float64) DEFAULT {none}"
                    for end, none in _EXTREMES.items()
                ),
                # The views first: what comes in meanwhile is counted by both, and an extreme twice is the same one.
                f"ALTER TABLE {{db}}.series_rollup_mv MODIFY QUERY {_ROLLUP_WITH_EXTREMES}",
                "ALTER TABLE {db}.rollup_missed_mv MODIFY QUERY "
                + _ROLLUP_WITH_EXTREMES.replace("metric_points", "rollup_missed"),
                _EXTREMES_OF_OLD,
            ],
        ),
        (
            7,
            [
                "ALTER TABLE {db}.runs ADD COLUMN IF NOT EXISTS tags Array(String) DEFAULT []",
                "ALTER TABLE {db}.runs ADD COLUMN IF NOT EXISTS group String DEFAULT ''",
                "ALTER TABLE {db}.runs ADD COLUMN IF NOT EXISTS job_type String DEFAULT ''",
                "ALTER TABLE {db}.runs ADD COLUMN IF NOT EXISTS notes String DEFAULT ''",
                _SUMMARIES,
                _TEXTS,
            ],
        ),
        (8, [_DASHBOARDS]),
    ]


def ensure_schema(command: Callable[[str], Any], database: str, cluster: str = "") -> None:
    """Brings the database to the newest version through `command(sql)`. Where it is that already, nothing is asked
    that takes more rights than to read."""
    newest, current = statements()[-1][0], _version(command, database)
    if current > newest:
        raise InvalidConfig(
            f"the database {database} was written by a newer Strata (schema version {current}, this one knows "
            f"{newest}): upgrade this one, or name another database with CH_DATABASE"
        )
    if current == newest:
        return
    command(on_cluster(f"CREATE DATABASE IF NOT EXISTS {database}", cluster))
    command(on_cluster(_VERSION.format(db=database), cluster))
    for version, parts in statements():
        if version > current:
            for sql in parts:
                command(on_cluster(sql.format(db=database), cluster))
            command(f"INSERT INTO {database}.schema_version (version) VALUES ({version})")  # noqa: S608 - see _version


def _version(command: Callable[[str], Any], database: str) -> int:
    """0 where there is no schema yet."""
    # The name passed the pattern of Settings.ch_database, which is why it may stand in a statement.
    if not int(command(f"EXISTS TABLE {database}.schema_version")):
        return 0
    return int(command(f"SELECT max(version) FROM {database}.schema_version"))  # noqa: S608 - see above


def set_retention(command: Callable[[str], Any], database: str, days: int, cluster: str = "") -> None:
    """Rows go after so many days."""
    for table in _WITH_TTL:
        ttl = f"ALTER TABLE {database}.{table} MODIFY TTL {_expiry(days)}"
        command(on_cluster(f"{ttl} SETTINGS materialize_ttl_after_modify = 0", cluster))


def _expiry(retention_days: int) -> str:
    """When a row may go. A DateTime ends in 2106 and starts again in 1970, which would delete rows of later years at
    once: they expire at its end instead. 1 is its beginning, because 0 stands for never."""
    seconds = f"intDiv(toUnixTimestamp64Milli(event_time), 1000) + {retention_days * 86_400:d}"
    return f"toDateTime(greatest(1, least({_LAST_SECOND}, {seconds})))"


def has_points(command: Callable[[str], Any], database: str) -> bool:
    """Whether there is a metric_points that can be read, whoever made it."""
    return bool(int(command(f"EXISTS TABLE {database}.metric_points")))
