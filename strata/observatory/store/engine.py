"""clickhouse-connect, for the embedded engine and for a server alike: the one file that imports it.

Blocking; runs only inside the store process. One engine belongs to one thread.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from strata.errors import MissingExtra
from strata.observatory.store.config import StoreConfig
from strata.types.shown import MARK

__all__ = ["Engine"]

# One batch lands in one block per partition.
_INSERT: dict[str, Any] = {"async_insert": 0}
# Groups are small: more threads would only take every core for a moment, which others on this host would feel.
_INSERT |= {"max_threads": 1, "max_insert_threads": 1}
# An import of old runs touches hundreds of months; by default a block of more than 100 is refused.
_INSERT |= {"max_partitions_per_insert_block": 0}
_READ = {"output_format_arrow_low_cardinality_as_dictionary": 0, "prefer_column_name_to_alias": 1}


class Engine:
    """A connection that takes Arrow tables in and gives Arrow tables back. With `limits` it can only read, within these
    settings, which nothing that is asked through it can change."""

    def __init__(self, config: StoreConfig, limits: Mapping[str, Any] | None = None) -> None:
        try:
            import clickhouse_connect
        except ImportError:
            raise MissingExtra("clickhouse-connect", "server") from None
        self._client: Any
        self._remote = config.path is None
        if config.path is not None:
            self._client = clickhouse_connect.get_client(interface="chdb", path=config.path)
        else:
            self._client = clickhouse_connect.get_client(
                host=config.host,
                port=config.port,
                secure=config.secure,
                username=config.user,
                password=config.password,
                connect_timeout=5,
                send_receive_timeout=60,
                autogenerate_session_id=False,
            )
        self._read: dict[str, Any] = dict(_READ)
        if limits is not None:
            self._confine(limits)

    def command(self, sql: str, parameters: dict[str, Any] | None = None) -> Any:
        return self._client.command(sql, parameters=parameters)

    def query(self, sql: str, parameters: dict[str, Any]) -> pa.Table:
        """Its texts can be read, whatever bytes somebody wrote."""
        try:
            return _readable(self._client.query_arrow(sql, parameters=parameters, settings=self._read))
        except Exception:
            self._drain()
            raise

    def lines(self, sql: str) -> list[str]:
        """The answer to EXPLAIN."""
        return [str(row[0]) for row in self._client.query(sql, settings=self._read).result_rows]

    def insert(self, table: str, rows: pa.Table, token: str) -> None:
        """With the same token and rows, a second call changes nothing in the tables that know tokens. On a server the
        token also names the query, so that it can be found while it runs."""
        settings = {**_INSERT, "insert_deduplication_token": token, **({"query_id": token} if self._remote else {})}
        self._client.insert_arrow(table, rows, settings=settings)

    def close(self) -> None:
        self._client.close()

    def _drain(self) -> None:
        """What the embedded engine had written when a query failed half-way stands before the next answer of the same
        connection (chDB 26.9), which nobody could read then."""
        if not self._remote:
            with contextlib.suppress(Exception):
                self._client.query_arrow("SELECT 1")

    def _confine(self, limits: Mapping[str, Any]) -> None:
        """A server takes settings with each query. The embedded engine keeps them per connection: what is set before
        `readonly` stays for good."""
        self._read |= limits
        if self._remote:
            self._read["readonly"] = 1
            return
        for name, value in {**self._read, "readonly": 1}.items():
            self._client.command(f"SET {name} = '{value}'")
        self._read = {}


def _readable(table: pa.Table) -> pa.Table:
    """ClickHouse's String holds any bytes; those that are no UTF-8 become their escapes after the mark."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if not pa.types.is_string(column.type):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            texts = [_text(raw) for raw in column.cast(pa.binary()).to_pylist()]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
    return table


def _text(raw: bytes | None) -> str | None:
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return MARK + raw.decode(errors="backslashreplace")
