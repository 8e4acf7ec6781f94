"""Hostile questions in SQL, grown by a grammar from a seed: writes, files, networks, system tables, sleep, memory, each
in places where a parser might overlook it: behind brackets that the question closes itself, under names that a WITH
defines elsewhere, behind names that look like lines of EXPLAIN, in quotes of every kind.
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
# The question stands in brackets: these close them, and leave one open at their end. {hidden} is a call or a source.
_BREAKOUTS = [
    "SELECT 1) UNION ALL SELECT * FROM ({hidden}",
    "SELECT 1) AS a, ({hidden}",
    "SELECT 1) AS a JOIN ({hidden}",
    "SELECT 1) WHERE 1 IN ({hidden}",
    "SELECT 1) EXCEPT SELECT * FROM ({hidden}",
    "SELECT 1) INTO OUTFILE '{file}.out' FORMAT CSV --",
    "SELECT 1) INTO OUTFILE '{file}.out' /*",
    "SELECT 1) SETTINGS readonly = 0 --",
    "SELECT 1) SETTINGS additional_result_filter = (",
    "SELECT 1) FORMAT Null /*",
    "SELECT 1) LIMIT 1 BY ({hidden}",
    "SELECT 1) PARALLEL WITH INSERT INTO FUNCTION file('{file}.out', 'CSV') SELECT * FROM (SELECT 1",
    "SELECT 1) parallel/**/with INSERT INTO {table} (run_id) SELECT * FROM (SELECT 'x'",
    "SELECT 1) PARALLEL WITH CREATE TABLE mine ENGINE = Memory AS (SELECT 1",
    "SELECT 1) PARALLEL WITH BACKUP TABLE {table} TO File('{file}.out'",
    "SELECT 1) PARALLEL\nWITH ALTER TABLE {table} DELETE WHERE (1",
    "SELECT 1) PARALLEL WITH DROP TABLE {table} PARALLEL WITH SELECT (1",
]
# Names that mean a table of the question in one place, and in another whatever the catalog has under them.
_SCOPES = [
    "SELECT * FROM (WITH {word} AS (SELECT 1) SELECT 1) AS a, {word}",
    "WITH {word} AS (SELECT * FROM {word}) SELECT * FROM {word}",
    "WITH a AS (SELECT * FROM {word}), {word} AS (SELECT * FROM a) SELECT * FROM {word}",
    "WITH {word} AS (WITH {word} AS (SELECT 1) SELECT * FROM {word}) SELECT * FROM {word}",
    "WITH runs AS (SELECT * FROM runs) SELECT * FROM runs",
    "SELECT 1 UNION ALL SELECT * FROM (WITH {word} AS (SELECT 1) SELECT * FROM {word}) UNION ALL SELECT * FROM {word}",
    "SELECT 1 UNION ALL WITH {word} AS (SELECT 1) SELECT * FROM {word} UNION ALL SELECT * FROM {word}",
    "WITH {word} AS (SELECT 1) SELECT 1 INTERSECT SELECT * FROM {word}",
    "SELECT (WITH {word} AS (SELECT 1) SELECT 1), (SELECT count() FROM {word})",
    "WITH `{word}` AS (SELECT 1) SELECT * FROM system.{word}",
    "SELECT '{word} AS (SELECT 1)' FROM {word}",
    "SELECT 1 AS `{word} AS (SELECT 1)` FROM {word}",
    "SELECT $${word} AS (SELECT 1)$$ FROM {word}",
    "WITH {word} AS (SELECT 1) SELECT 1 IN {word}, in(1, {word}), 1 IN ({word})",
    "SELECT exists({word}), exists(system.one)",
    "WITH RECURSIVE {word} AS (SELECT * FROM {word}) SELECT * FROM {word}",
    "SELECT * FROM '{word}'",
    "SELECT * FROM runs UUID '00000000-0000-0000-0000-000000000000'",
    "WITH x -> {bad} AS f SELECT f(1)",
    "SELECT {bad} FROM runs AS file",
]
_WORDS = ["summaries", "run_edits", "texts", "tables", "settings", "one", "secret", "passwd", "dashboards"]
# Names and aliases that look like lines of EXPLAIN AST.
_FORGED = [
    "SELECT `a\n      Literal 1`, {bad}",
    "SELECT `a (children 1)`, {bad}",
    "SELECT {bad} AS `x) (children 1)\n     ExpressionList (children 1)\n      Literal 1`",
    "SELECT {bad} AS `x (alias y) (children 0)`",
    "SELECT `sum (alias x)`({bad})",
    "SELECT `count\n     Function file`()",
    "SELECT 1 AS `a)\n        Literal 1\n        TableIdentifier runs (alias b`, {bad}",
    "SELECT `a\n          Literal 1` IN system.one",
    "SELECT 1 IN `system.one (alias a)\n Literal 1`",
    "SELECT * FROM `runs\n        TableIdentifier runs`",
    "SELECT * FROM `runs (alias a)`",
    'SELECT "file"({file!r}), {bad}',
    "SELECT \u201cfile\u201d('{file}')",
    "SELECT file(\u2018{file}\u2019)",
    "SELECT file($a${file}$a$)",
    "SELECT\u00a0file('{file}')",
    "SELECT fi\u200ble('{file}')",
    "SELECT # it is harmless\n file('{file}')",
    "SELECT #! it is harmless\n file('{file}')",
    "SELECT /* /* nested */ */ file('{file}')",
    "SELECT '\\'' || file('{file}') || ''",
    "SELECT '' -- ' \n || file('{file}')",
]
# What only takes: each must be ended by the engine's own bounds, or be small.
_GREEDY = [
    "SELECT count() FROM metric_points AS a, metric_points AS b, metric_points AS c, metric_points AS d",
    "SELECT arrayJoin(range(1000000000))",
    "SELECT sum(n) FROM (SELECT arrayJoin(range(100000000)) AS n)",
    "SELECT length(repeat(repeat('x', 1000000), 1000000))",
    "SELECT arrayMap(x -> repeat('x', 1000000), range(1000000))",
    "SELECT arrayMap(x -> arrayMap(y -> range(100000), range(100000)), range(100000))",
    "SELECT printf('%2000000000d', 1)",
    "SELECT leftPad('x', 2000000000)",
    "SELECT groupArraySorted(1000000000000)(value) FROM metric_points",
    "SELECT groupArrayMovingAvg(1000000000000)(value) FROM metric_points",
    "SELECT topK(1000000000000)(value) FROM metric_points",
    "SELECT histogram(1000000000)(value) FROM metric_points",
    "SELECT CAST('x' AS FixedString(2000000000))",
    "SELECT CAST('x' AS AggregateFunction(uniq, String))",
    "SELECT CAST('\\xff\\xff\\xff\\xff\\xff' AS AggregateFunction(groupArray, String))",
    "SELECT JSONExtract('{}', 'AggregateFunction(sum, UInt64)')",
    "SELECT replaceRegexpAll(repeat('a', 1000000), '(a*)*', 'bbbbbbbb')",
    "SELECT " + "(" * 900 + "1" + ")" * 900,
    "SELECT " + "-" * 3 + "1" + " + 1" * 20_000,
    "SELECT " + "abs(" * 400 + "1" + ")" * 400,
    "SELECT " + "[" * 400 + "]" * 400,
    "SELECT formatDateTime(now(), repeat('%Y', 10000000))",
    "SELECT arraySort(x -> cityHash64(x), range(50000000))[1]",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT max(n) FROM x",
    "SELECT * FROM metric_points ORDER BY arrayJoin(range(10000000)), run_id",
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
    kind = chance.random()
    if kind < 0.02:
        return chance.choice(_GREEDY)
    if kind < 0.3:
        return _filled(chance, chance.choice(chance.choice([_WRITES, _BREAKOUTS, _SCOPES, _FORGED])), depth)
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
    word = chance.choice(_WORDS)
    hidden = f"SELECT {chance.choice(_CALLS)}", f"SELECT * FROM {chance.choice(_SOURCES)}"  # noqa: S608 - its purpose
    text = text.replace("{word}", word).replace("{hidden}", chance.choice(hidden)).replace("{file!r}", "'{file}'")
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
