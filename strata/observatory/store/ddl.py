"""The statements of the schema as a cluster of ClickHouse servers needs them: on every host, and replicated."""

import re

__all__ = ["on_cluster"]

_NAME = r"\S+\.\S+"
_WHERE = re.compile(
    rf"^\s*(CREATE DATABASE IF NOT EXISTS \S+|CREATE (?:TABLE|MATERIALIZED VIEW) IF NOT EXISTS {_NAME}"
    rf"|(?:ALTER|TRUNCATE) TABLE {_NAME})",
)
_ENGINE = re.compile(r"ENGINE = (\w*MergeTree)\b")
_WINDOW = re.compile(r"\bnon_replicated_deduplication_window\b")


def on_cluster(sql: str, cluster: str) -> str:
    """The same statement for all hosts of this cluster; with no name, as it is. Where replicas meet is left to the
    servers (default_replica_path). Rows are told apart by the same rule as on one host: see `_WINDOW` of the schema."""
    found = _WHERE.match(sql)
    if not cluster or found is None:
        return sql
    spread = f"{found[1]} ON CLUSTER '{cluster}'{sql[found.end() :]}"
    return _WINDOW.sub("replicated_deduplication_window", _ENGINE.sub(r"ENGINE = Replicated\1", spread))
