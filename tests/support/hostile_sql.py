"""Hostile questions in SQL, grown by a grammar from a seed: writes, files, networks, system tables, sleep, memory, each
in places where a parser might overlook it.
"""

import random
from collections.abc import Iterator

__all__ = ["grow"]

_WRITES = [
    "DROP TABLE {table}",
    "TRUNCATE TABLE {table}",
    "INSERT INTO {table} VALUES (1)",
    "INSERT INTO FUNCTION file('{file}.out', 'CSV') SELECT 1",
    "ALTER TABLE {table} DELETE WHERE 1",
    "ALTER TABLE {table} UPDATE value = 0 WHERE 1",
    "OPTIMIZE TABLE {table} FINAL",
    "RENAME TABLE {table} TO gone",
    "CREATE TABLE mine ENGINE = Memory AS {select}",
    "CREATE VIEW mine AS {select}",
    "CREATE FUNCTION mine AS (x) -> file(x)",
    "CREATE USER mine",
    "ATTACH TABLE mine FROM '{file}' (a UInt8) ENGINE = File(CSV)",
    "DETACH TABLE {table}",
    "SET readonly = 0",
    "SET max_memory_usage = 0",
    "SYSTEM SHUTDOWN",
    "SYSTEM RELOAD CONFIG",
    "KILL QUERY WHERE 1",
    "GRANT ALL ON *.* TO default",
    "BACKUP TABLE {table} TO File('{file}.out')",
    "USE system",
    "SHOW TABLES FROM system",
    "DESCRIBE TABLE {table}",
    "EXPLAIN {select}",
    "EXISTS TABLE {table}",
    "DELETE FROM {table} WHERE 1",
]
_TABLES = ["training_observability.runs", "training_observability.metric_points", "training_observability.run_edits"]
_SOURCES = [
    "file('{file}', 'LineAsString')",
    "file('{file}', LineAsString, 'line String')",
    "url('http://127.0.0.1:1/', 'LineAsString')",
    "urlCluster('default', 'http://127.0.0.1:1/', 'CSV')",
    "s3('http://127.0.0.1:1/b', 'CSV')",
    "gcs('http://127.0.0.1:1/b', 'CSV')",
    "azureBlobStorage('http://127.0.0.1:1/', 'a', 'b')",
    "hdfs('hdfs://127.0.0.1:1/b', 'CSV')",
    "remote('127.0.0.1', 'system', 'one')",
    "remoteSecure('127.0.0.1', system.one)",
    "cluster('default', system.one)",
    "mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
    "mongodb('127.0.0.1:1', 'a', 'b', 'c', 'd', 'e UInt8')",
    "redis('127.0.0.1:1', 'k', 'k String')",
    "sqlite('{file}', 'a')",
    "jdbc('x', 'y')",
    "odbc('x', 'y')",
    "executable('id', 'TSV', 'a String')",
    "input('a String')",
    "merge('system', '.*')",
    "loop(system.one)",
    "dictionary('x')",
    "view({select})",
    "numbers(1000000000000)",
    "zeros(1000000000000)",
    "generateRandom('a String', 1, 1000000000)",
    "generateSeries(0, 1000000000000)",
    "values('a String', 'x')",
    "format(LineAsString, 'x')",
    "null('a String')",
    "fuzzQuery('SELECT 1', 10, 1)",
    "mergeTreeIndex(system, one)",
    "python('x')",
    "Python('x')",
    "system.one",
    "system.tables",
    "system.settings",
    "system.processes",
    "system.`query_log`",
    "`system`.users",
    "information_schema.tables",
    "INFORMATION_SCHEMA.COLUMNS",
    "training_observability.runs",
    "training_observability.run_edits",
    "default.summaries",
]
_CALLS = [
    "file('{file}')",
    "`file`('{file}')",
    "FILE('{file}')",
    "sleep(3)",
    "sleepEachRow(3)",
    "getSetting('max_threads')",
    "currentUser()",
    "hostName()",
    "fqdn()",
    "version()",
    "uptime()",
    "filesystemAvailable()",
    "getMacro('x')",
    "getClientHTTPHeader('Authorization')",
    "dictGet('a', 'b', 1)",
    "joinGet('a', 'b', 1)",
    "catboostEvaluate('{file}', 1)",
    "addressToLine(1)",
    "addressToSymbol(1)",
    "demangle('x')",
    "logTrace('x')",
    "throwIf(1)",
    "initializeAggregation('sum', 1)",
    "arrayReduce('sum', [1])",
    "evalMLMethod(1)",
    "encrypt('aes-128-ecb', 'x', '0123456789abcdef')",
    "serverUUID()",
    "tcpPort()",
    "queryID()",
    "currentDatabase()",
    "currentProfiles()",
    "showCertificate()",
    "randomStringUTF8(1000000000)",
    "range(1000000000000)",
    "arrayWithConstant(1000000000000, 1)",
    "repeat('x', 1000000000000)",
    "aiGenerate('x')",
]
# {bad} becomes a call, {source} a place to read from.
_SHAPES = [
    "SELECT {bad}",
    "SELECT {bad} AS a",
    "SELECT [{bad}]",
    "SELECT ({bad}, 1)",
    "SELECT if(1, {bad}, '')",
    "SELECT arrayMap(x -> {bad}, [1])",
    "SELECT 1 ORDER BY {bad}",
    "SELECT count() FROM runs GROUP BY {bad}",
    "SELECT count() FROM runs HAVING {bad} != ''",
    "SELECT 1 FROM runs WHERE {bad} = ''",
    "SELECT 1 FROM runs PREWHERE {bad} = ''",
    "SELECT 1 LIMIT {bad}",
    "SELECT sum(value) OVER (PARTITION BY {bad}) FROM metric_points",
    "SELECT CASE WHEN {bad} = '' THEN 1 ELSE 2 END",
    "SELECT {bad}::String",
    "SELECT CAST({bad} AS String)",
    "SELECT * REPLACE({bad} AS name) FROM runs",
    "SELECT * APPLY(x -> {bad}) FROM runs",
    "WITH {bad} AS x SELECT x",
    "WITH x AS (SELECT {bad}) SELECT * FROM x",
    "SELECT (SELECT {bad})",
    "SELECT EXISTS(SELECT {bad})",
    "SELECT 1 IN (SELECT {bad})",
    "SELECT a FROM runs ARRAY JOIN [{bad}] AS a",
    "SELECT 1 UNION ALL SELECT {bad}",
    "SELECT 1 INTERSECT SELECT {bad}",
    "SELECT * FROM {source}",
    "SELECT * FROM (SELECT * FROM {source})",
    "SELECT * FROM runs JOIN {source} AS s ON 1",
    "SELECT * FROM runs, {source} AS s",
    "SELECT * FROM runs WHERE run_id IN (SELECT * FROM {source})",
    "WITH x AS (SELECT * FROM {source}) SELECT * FROM x",
    "WITH RECURSIVE x AS (SELECT * FROM {source} UNION ALL SELECT * FROM x) SELECT * FROM x",
    "SELECT 1 UNION ALL SELECT * FROM {source}",
    "SELECT 1 EXCEPT SELECT * FROM {source}",
    "(SELECT * FROM {source})",
    "FROM {source} SELECT *",
    "SELECT count() FROM metric_points AS a, metric_points AS b, {source} AS c",
]
_TAILS = [
    *("", "", "", "", ";", " -- x", " /* x */", " LIMIT 1", " SETTINGS readonly = 0", " FORMAT CSV"),
    *(" INTO OUTFILE '{file}.out'", " INTO OUTFILE '{file}.out' TRUNCATE FORMAT CSV", "; {write}", "\x00", " \n;;"),
]


def grow(seed: int, count: int, file: str) -> Iterator[str]:
    """`count` questions. `file` is one that the engine could read; beside it nothing may appear."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _spelled(chance, _question(chance, chance.choice([1, 1, 2, 3]))).replace("{file}", file)


def _question(chance: random.Random, depth: int) -> str:
    if chance.random() < 0.15:
        return _filled(chance, chance.choice(_WRITES), depth)
    return _filled(chance, chance.choice(_SHAPES), depth) + _filled(chance, chance.choice(_TAILS), 0)


def _filled(chance: random.Random, text: str, depth: int) -> str:
    """The text with its places filled, by a question of less depth where there is room for one."""

    def inner() -> str:
        return _filled(chance, chance.choice(_SHAPES), depth - 1) if depth > 0 else "SELECT 1"

    while "{bad}" in text:
        nested = f"({inner()})" if depth > 0 and chance.random() < 0.3 else chance.choice(_CALLS)
        text = text.replace("{bad}", nested, 1)
    while "{source}" in text:
        nested = f"({inner()})" if depth > 0 and chance.random() < 0.3 else chance.choice(_SOURCES)
        text = text.replace("{source}", nested, 1)
    for place, fill in (("{select}", inner), ("{table}", lambda: chance.choice(_TABLES))):
        while place in text:
            text = text.replace(place, fill(), 1)
    return text.replace(
        "{write}", chance.choice(_WRITES).replace("{table}", _TABLES[0]).replace("{select}", "SELECT 1")
    )


def _spelled(chance: random.Random, text: str) -> str:
    """The same in another spelling: other cases, comments and white space between words."""
    gap = chance.choice([" ", " ", " ", "  ", "\n", "\t", " /**/ ", " -- x\n"])
    words = text.split(" ")
    if chance.random() < 0.2:
        words = [word.lower() if word.isupper() else word for word in words]
    return gap.join(words) if "'" not in text or gap.isspace() else " ".join(words)
