"""The embedded engine or a server, alike: questions in SQL, answers and rows in ClickHouse's Native format.

Blocking; runs only inside the store process. One engine belongs to one thread.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from strata.observatory.store.config import StoreConfig
from strata.observatory.store.embedded import Embedded
from strata.observatory.store.native import decode
from strata.observatory.store.remote import Remote

__all__ = ["Engine"]

# One batch lands in one block per partition.
_INSERT: dict[str, Any] = {"async_insert": 0}
# Groups are small: more threads would only take every core for a moment, which others on this host would feel.
_INSERT |= {"max_threads": 1, "max_insert_threads": 1}
# An import of old runs touches hundreds of months; by default a block of more than 100 is refused.
_INSERT |= {"max_partitions_per_insert_block": 0}
_READ = {"prefer_column_name_to_alias": 1}


class Engine:
    """A connection that is confined, every time anew, before anything is asked through it: with `limits` it can only
    read, within these settings, which nothing that is asked through it can change."""

    def __init__(self, config: StoreConfig, limits: Mapping[str, Any] | None = None) -> None:
        settings = dict(_READ) if limits is None else {**_READ, **limits, "readonly": 1}
        self._open = _opener(config, settings)
        self._is_remote = config.path is None
        self._connection: Embedded | Remote | None = self._open()

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> str:
        """What it answers, if anything: one value as text."""
        return self._connected().command(sql, parameters or {})

    def query(self, sql: str, parameters: Mapping[str, Any]) -> bytes:
        return self._connected().query(sql, parameters)

    def pieces(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """A long answer of the embedded engine in pieces of whole blocks, a server's as one."""
        connection = self._connected()
        if isinstance(connection, Embedded):
            return connection.pieces(sql, parameters)
        return iter((connection.query(sql, parameters),))

    def lines(self, sql: str) -> list[str]:
        """The answer to EXPLAIN."""
        (column,) = decode(self.query(sql, {})).columns.values()
        return [str(line) for line in column.to_list()]

    def insert(self, table: str, names: Sequence[str], block: bytes | bytearray, token: str) -> None:
        """With the same token and rows, a second call changes nothing in the tables that know tokens. On a server the
        token also names the query, so that it can be found while it runs."""
        settings = {**_INSERT, "insert_deduplication_token": token, **({"query_id": token} if self._is_remote else {})}
        self._connected().insert(table, names, block, settings)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connected(self) -> Embedded | Remote:
        if self._connection is None:
            self._connection = self._open()
        return self._connection


def _opener(config: StoreConfig, settings: Mapping[str, Any]) -> Callable[[], Embedded | Remote]:
    path = config.path
    return (lambda: Remote(config, settings)) if path is None else (lambda: Embedded(path, settings))
