"""Every statement of the schema on a cluster: on all its hosts, replicated, and still a statement of ClickHouse."""

import json
import subprocess
import sys

import pytest

from strata.observatory.store.ddl import on_cluster
from strata.observatory.store.schema import ensure_schema, set_retention

# In a process of its own: the engine does not share one with others.
_PARSE = """
import json, sys, chdb
for sql in json.load(sys.stdin):
    chdb.query("EXPLAIN AST " + sql)
"""


def _asked(cluster: str) -> list[str]:
    """What an empty server is asked."""
    asked: list[str] = []

    def command(sql: str) -> int:
        asked.append(sql)
        return 0

    ensure_schema(command, "db", cluster)
    set_retention(command, "db", 7, cluster)
    return asked


def test_all_that_defines_is_for_the_whole_cluster_and_all_that_writes_for_one_host() -> None:
    for sql in _asked("main"):
        defines = sql.split()[0] in ("CREATE", "ALTER", "TRUNCATE")
        assert ("ON CLUSTER 'main'" in sql) == defines, sql
        assert "non_replicated" not in sql
        assert sql.count("MergeTree") == sql.count("Replicated"), sql


def test_a_server_alone_is_asked_the_same_without_a_word_of_clusters() -> None:
    alone = _asked("")
    assert len(alone) == len(_asked("main"))
    assert not [sql for sql in alone if "CLUSTER" in sql or "Replicated" in sql]
    assert on_cluster("SELECT 1", "main") == "SELECT 1"


@pytest.mark.slow  # it loads the engine
def test_clickhouse_can_read_every_statement() -> None:
    subprocess.run([sys.executable, "-c", _PARSE], input=json.dumps(_asked("main")), text=True, check=True, timeout=240)
