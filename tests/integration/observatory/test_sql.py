"""Questions in SQL against a real store: what researchers ask is answered, what reaches further is refused, and a
question without end is ended."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strata.errors import InvalidArgument
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.supervised import SupervisedStore
from strata.observatory.store.table import Table
from tests.integration.observatory.conftest import ObservatoryProcess
from tests.integration.observatory.test_http import send
from tests.integration.observatory.test_labels import a_run
from tests.integration.observatory.test_runs import patch
from tests.support.clickhouse import clickhouse

SECRET = "only for the one who runs it"

# ruff: noqa: S608 - the questions are constants
OF = "run_id IN ('a', 'b')"
ANSWERED = {
    f"SELECT count() FROM metric_points WHERE {OF}": [[4]],
    f"SELECT run_id, min(value) AS best FROM metric_points WHERE {OF} GROUP BY run_id ORDER BY best": [
        ["b", 1.0],
        ["a", 2.0],
    ],
    "SELECT argMin(step, value) FROM metric_points WHERE run_id = 'b' -- the best step": [[1]],
    f"WITH top AS (SELECT run_id, max(step) AS s FROM metric_points WHERE {OF} GROUP BY run_id) "
    "SELECT r.name, top.s FROM runs AS r JOIN top ON top.run_id = r.run_id ORDER BY 1": [["A", 1], ["Bee", 1]],
    "SELECT name FROM runs WHERE has(tags, 't')": [["Bee"]],
    "SELECT run_id FROM runs WHERE JSONExtractFloat(config_json, 'lr') > 0.01": [["a"]],
    "SELECT JSONExtractFloat(summary_json, 'best') FROM runs WHERE run_id = 'a'": [[0.5]],
    "SELECT step, value - lagInFrame(value) OVER (ORDER BY step) AS d FROM metric_points WHERE run_id = 'a' "
    "ORDER BY step": [[0, 3.0], [1, -1.0]],
    f"SELECT arrayMap(x -> x * 2, groupArray(value)) FROM (SELECT value FROM metric_points WHERE {OF} ORDER BY value) "
    "WHERE value IN (1, 2)": [[[2.0, 4.0]]],
    "SELECT 1 AS n UNION ALL SELECT 2 AS n ORDER BY n": [[1], [2]],
    "SELECT 'a\nb; DROP TABLE runs' AS text": [["a\nb; DROP TABLE runs"]],
    "SELECT count() FROM logs WHERE level = 'error' AND run_id = 'a'": [[0]],
}

# {file} is one that the engine could read.
REFUSED = """
SELECT 1; DROP TABLE runs
DROP TABLE training_observability.runs
INSERT INTO training_observability.runs (run_id) VALUES ('x')
ALTER TABLE training_observability.metric_points DELETE WHERE 1
TRUNCATE TABLE training_observability.metric_points
CREATE TABLE x (a UInt8) ENGINE = Memory
SET readonly = 0
SYSTEM SHUTDOWN
KILL QUERY WHERE 1
GRANT ALL ON *.* TO default
USE system
SHOW TABLES
EXPLAIN SELECT 1
DESCRIBE TABLE runs
SELECT file('{file}')
SELECT `file`('{file}')
SELECT FILE('{file}')
SELECT arrayMap(x -> file(x), ['{file}'])
SELECT * FROM file('{file}', 'LineAsString')
SELECT * FROM runs WHERE run_id IN (SELECT * FROM file('{file}', 'LineAsString'))
WITH x AS (SELECT file('{file}') AS f) SELECT f FROM x
SELECT 1 ORDER BY file('{file}')
SELECT count() FROM runs GROUP BY file('{file}')
SELECT * APPLY(file) FROM (SELECT '{file}' AS a)
SELECT COLUMNS('a') APPLY(file) FROM (SELECT '{file}' AS a)
SELECT * REPLACE(file(a) AS a) FROM (SELECT '{file}' AS a)
SELECT 1 INTO OUTFILE '{file}.out'
SELECT 1 FORMAT CSV
SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')
SELECT * FROM s3('http://127.0.0.1:1/b', 'CSV')
SELECT * FROM remote('127.0.0.1', 'system', 'one')
SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')
SELECT * FROM sqlite('{file}', 'a')
SELECT * FROM executable('id', 'TSV', 'a String')
SELECT * FROM merge('.*')
SELECT * FROM numbers(10)
SELECT * FROM view(SELECT 1)
SELECT * FROM system.tables
SELECT * FROM `system`.`settings`
SELECT * FROM `system.tables`
SELECT * FROM information_schema.tables
SELECT * FROM training_observability.run_edits
SELECT * FROM training_observability.runs
SELECT * FROM summaries
SELECT * FROM summaries WINDOW summaries AS (ORDER BY run_id)
SELECT 'summaries AS (SELECT' FROM summaries
SELECT 1 IN system.one
SELECT in(1, system.one)
SELECT 1 GLOBAL IN system.one
SELECT globalNotIn(1, system.one)
SELECT `a\n      Literal 1`, 1 IN system.one
SELECT `a (children 1)` IN system.one
SELECT dictGet('a', 'b', 1)
SELECT joinGet('a', 'b', 1)
SELECT sleep(3)
SELECT sleepEachRow(3) FROM metric_points
SELECT getSetting('max_threads')
SELECT hostName(), currentUser(), version()
SELECT arrayReduce('sum', [1])
SELECT 1 SETTINGS max_execution_time = 100
SELECT * FROM (SELECT 1 SETTINGS readonly = 0)
SELECT {{p:String}}
SELECT nope FROM runs
SELEC 1
(
SELECT 1) UNION ALL SELECT * FROM (SELECT file('{file}')
""".strip().splitlines()


@pytest.fixture(scope="module")
def asked(shared_observatory: ObservatoryProcess) -> ObservatoryProcess:
    """A store with two runs, of which people have named one."""
    process = shared_observatory
    send(process, a_run("a", [3.0, 2.0], name="A", config_json='{"lr": 0.1}'))
    send(process, a_run("b", [4.0, 1.0], name="B"))
    assert patch(process, "b", {"name": "Bee", "tags": ["t"]}).status_code == 200
    return process


def rows(process: ObservatoryProcess, question: str) -> list[list[Any]]:
    answer = process.post("/api/sql", {"query": question})
    assert answer.status_code == 200, answer.text
    found: list[list[Any]] = answer.json()["rows"]
    return found


@pytest.mark.parametrize("question", ANSWERED)
def test_what_researchers_ask_is_answered(asked: ObservatoryProcess, question: str) -> None:
    assert rows(asked, question) == ANSWERED[question]


@pytest.mark.parametrize("question", REFUSED)
def test_what_reaches_further_is_refused_and_changes_nothing(
    asked: ObservatoryProcess, tmp_path: Path, question: str
) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    kind, told = outcome(asked, question.format(file=file))
    assert kind == "refused", told
    assert SECRET not in told
    assert not list(tmp_path.glob("*.out"))
    assert rows(asked, "SELECT count() FROM metric_points WHERE run_id IN ('a', 'b')") == [[4]], "the next is answered"


def outcome(process: ObservatoryProcess, question: str) -> tuple[str, str]:
    answer = process.post("/api/sql", {"query": question})
    assert answer.status_code in (200, 400, 422), answer.text
    return "answered" if answer.status_code == 200 else "refused", answer.text


@pytest.mark.slow
def test_pieces_of_questions_put_together_at_random_reach_nothing(asked: ObservatoryProcess, tmp_path: Path) -> None:
    """Whatever is answered must be free of the secret: 400 questions of one seed, nested in each other."""
    file = tmp_path / "secret"
    file.write_text(SECRET)
    chance = random.Random(19)
    pieces = ["1", "name", f"file('{file}')", "'x'", "*", "run_id", "(SELECT 1)", "system.one", "count()", "`a\n b`"]
    tables = ["runs", "metric_points", "system.one", f"file('{file}', 'LineAsString')", "(SELECT 1 AS a)", "x"]
    shapes = [
        "SELECT {p} FROM {t}",
        "SELECT {p}, {q} FROM {t} WHERE {p} IN {t}",
        "WITH x AS (SELECT {p} FROM {t}) SELECT * FROM x",
    ]
    shapes += ["SELECT * FROM (SELECT {p} FROM {t}) WHERE {q} != ''", "SELECT {p}) FROM {t}; SELECT {q} FROM ({t}"]
    outcomes = {"answered": 0, "refused": 0}
    for _ in range(400):
        chosen = {"p": chance.choice(pieces), "q": chance.choice(pieces), "t": chance.choice(tables)}
        question = chance.choice(shapes).format(**chosen)
        kind, told = outcome(asked, question)
        outcomes[kind] += 1
        assert SECRET not in told, question
    assert all(outcomes.values()), outcomes


_BOUNDED = """
import sys
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.engine import Engine
from strata.observatory.store.guest import LIMITS
from strata.observatory.store.native import decode

there = sys.argv[1]
config = StoreConfig(path=there) if there.startswith("/") else StoreConfig(path=None, host=there)
writer = Engine(config)
writer.command("CREATE DATABASE d")
writer.command("CREATE TABLE d.t (a UInt64) ENGINE = MergeTree ORDER BY a")
writer.command("INSERT INTO d.t SELECT number FROM numbers(3000)")
limits = LIMITS | {"max_memory_usage": 100_000_000, "max_result_rows": 10}
hasty = Engine(config, limits | {"max_execution_time": 1})
guest = Engine(config, limits | {"max_execution_time": 60})  # a busy machine is no reason to end what is small
asked = (
    ("SELECT groupArray(toString(a.a)) FROM d.t AS a, d.t AS b, d.t AS c", 241),
    ("SELECT a FROM d.t", 396),
    ("INSERT INTO d.t VALUES (1)", 164),
    ("SELECT 1 SETTINGS max_execution_time = 100", 164),
    ("SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')", 164),
)


def refused(engine, question, code):
    try:
        engine.query(question, {})
    except Exception as error:
        assert f"Code: {code}" in str(error), (question, error)
    else:
        raise SystemExit(f"answered: {question}")


refused(hasty, "SELECT count() FROM d.t AS a, d.t AS b, d.t AS c WHERE a.a + b.a + c.a = 1", 159)
for questions in (asked, asked[1:]):
    for question, code in questions:
        refused(guest, question, code)
    guest.close()  # the next connection has the same limits
assert decode(guest.query("SELECT count() AS n FROM d.t", {}))["n"].to_list() == [3000]
"""


def _end_what_asks_too_much(there: str) -> None:
    done = subprocess.run([sys.executable, "-c", _BOUNDED, there], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_engine_ends_what_asks_too_much(tmp_path: Path) -> None:
    """The connection itself holds the limits, without any check of the question. A process of its own: chDB has one
    folder per process."""
    _end_what_asks_too_much(str(tmp_path / "metrics"))


async def test_a_server_is_asked_within_the_same_limits(tmp_path: Path) -> None:
    """To a server they go with each query."""
    with clickhouse(tmp_path / "db") as port:
        await asyncio.to_thread(_end_what_asks_too_much, f"127.0.0.1:{port}")
        store = SupervisedStore(StoreConfig(path=None, host="127.0.0.1", port=port))
        await store.start()
        try:
            await store.wait_ready()
            points = Table.of({"run_id": ["a", "a"], "metric": ["loss"] * 2, "step": [0, 1], "value": [3.0, 2.0]})
            await store.insert("metric_points", points, token="1")
            joined = "metric_points JOIN runs USING (run_id)"
            found = await store.ask(f"SELECT run_id, latest_step, min(value) AS best FROM {joined} GROUP BY 1, 2")
            assert found.to_rows() == [{"run_id": "a", "latest_step": 1, "best": 2.0}]
            for refused in ("DROP TABLE runs", "SELECT * FROM system.one", "SELECT 1 SETTINGS readonly = 0", "SELEC 1"):
                with pytest.raises(InvalidArgument):
                    await store.ask(refused)
            assert (await store.ask("SELECT count() AS n FROM metric_points")).to_rows() == [{"n": 2}]
        finally:
            await store.stop()


def test_what_was_just_sent_is_found_and_odd_bodies_are_refused(shared_observatory: ObservatoryProcess) -> None:
    process = shared_observatory
    send(process, a_run("asked", [3.0, float("nan"), 2.0], tags=["x"], config_json='{"lr": 0.001}'))
    assert patch(process, "asked", {"tags": ["y"]}).status_code == 200
    question = """SELECT name, tags, value, event_time FROM metric_points JOIN runs USING (run_id)
                  WHERE run_id = 'asked' ORDER BY step"""
    answer = process.post("/api/sql", {"query": question})
    told = answer.json()
    assert answer.status_code == 200, answer.text
    assert [column["name"] for column in told["columns"]] == ["name", "tags", "value", "event_time"]
    assert [row[1:3] for row in told["rows"]] == [[["y"], 3.0], [["y"], "NaN"], [["y"], 2.0]], "just sent, and found"
    assert told["truncated"] is False
    refused = process.post("/api/sql", {"query": "SELECT * FROM system.tables"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_argument")
    assert process.post("/api/sql", {"query": ""}).status_code in (400, 422)
    assert process.post("/api/sql", {"query": "SELECT 1", "more": 1}).status_code in (400, 422)
