"""clickhouse-connect, for the embedded engine and for a server alike: the one file that imports it.

Blocking; runs only inside the store process. One engine belongs to one thread.
"""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from strata.errors import MissingExtra
from strata.observatory.store.config import StoreConfig
from strata.types.shown import MARK

__all__ = ["Engine", "readable"]

# One batch lands in one block per partition.
_INSERT: dict[str, Any] = {"async_insert": 0}
# Groups are small: more threads would only take every core for a moment, which others on this host would feel.
_INSERT |= {"max_threads": 1, "max_insert_threads": 1}
# An import of old runs touches hundreds of months; by default a block of more than 100 is refused.
_INSERT |= {"max_partitions_per_insert_block": 0}
_READ = {"output_format_arrow_low_cardinality_as_dictionary": 0, "prefer_column_name_to_alias": 1}
# What the client sets itself for a server. Nothing is gained by compressing what never leaves this process.
_EMBEDDED = {"output_format_arrow_string_as_string": 1, "output_format_arrow_compression_method": "none"}


class Engine:
    """A connection that takes Arrow tables in and gives Arrow tables back. With `limits` it can only read, within these
    settings, which nothing that is asked through it can change."""

    def __init__(self, config: StoreConfig, limits: Mapping[str, Any] | None = None) -> None:
        try:
            import clickhouse_connect
        except ImportError:
            raise MissingExtra("clickhouse-connect", "server") from None
        self._connect = partial(_connect, clickhouse_connect.get_client, config)
        self._remote = config.path is None
        self._limits = limits
        self._read: dict[str, Any] = {}
        self._client: Any = self._open()

    def command(self, sql: str, parameters: dict[str, Any] | None = None) -> Any:
        return self._asked(lambda client: client.command(sql, parameters=parameters))

    def query(self, sql: str, parameters: dict[str, Any]) -> pa.Table:
        """Its texts can be read, whatever bytes somebody wrote."""
        try:
            return readable(self._asked(lambda client: self._fetch(client, sql, parameters)))
        except Exception:
            self._drain()
            raise

    def lines(self, sql: str) -> list[str]:
        """The answer to EXPLAIN."""
        found = self._asked(lambda client: client.query(sql, settings=self._read))
        return [str(row[0]) for row in found.result_rows]

    def insert(self, table: str, rows: pa.Table, token: str) -> None:
        """With the same token and rows, a second call changes nothing in the tables that know tokens. On a server the
        token also names the query, so that it can be found while it runs."""
        settings = {**_INSERT, "insert_deduplication_token": token, **({"query_id": token} if self._remote else {})}
        self._asked(lambda client: client.insert_arrow(table, rows, settings=settings))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _asked(self, ask: Callable[[Any], Any]) -> Any:
        """Of a server that does not answer the next call looks for one that does; this one fails, for nobody knows what
        became of it."""
        try:
            if self._client is None:
                self._client = self._open()
            return ask(self._client)
        except Exception as error:
            if self._remote and type(error).__name__ == "OperationalError":
                self.close()
            raise

    def _fetch(self, client: Any, sql: str, parameters: dict[str, Any]) -> pa.Table:
        if self._remote:
            return client.query_arrow(sql, parameters=parameters, settings=self._read)
        # Not query_arrow: to set the one setting that it adds and to restore it takes the client four calls more.
        found = client.raw_query(sql, parameters=parameters, fmt="Arrow")
        return pa.ipc.open_file(pa.py_buffer(found)).read_all()

    def _open(self) -> Any:
        """A connection that is confined, every time anew, before anything is asked through it."""
        client = self._connect()
        self._read = self._prepared(client)
        return client

    def _prepared(self, client: Any) -> dict[str, Any]:
        """What goes with each query: a server takes settings so. The embedded engine keeps them per connection: what is
        set before `readonly` stays for good."""
        settings = dict(_READ) if self._limits is None else {**_READ, **self._limits, "readonly": 1}
        if self._remote:
            return settings
        for name, value in (_EMBEDDED | settings).items():
            client.command(f"SET {name} = '{value}'")
        return {}

    def _drain(self) -> None:
        """What the embedded engine had written when a query failed half-way stands before the next answer of the same
        connection (chDB 26.9), which nobody could read then."""
        if not self._remote:
            with contextlib.suppress(Exception):
                self._fetch(self._client, "SELECT 1", {})


def _connect(get_client: Callable[..., Any], config: StoreConfig) -> Any:
    """The embedded engine, or the first of the servers that answers."""
    if config.path is not None:
        return get_client(interface="chdb", path=config.path)
    *others, last = config.hosts
    for host, port in others:
        try:
            return _dial(get_client, config, host, port)
        except Exception as error:
            if type(error).__name__ != "OperationalError":
                raise
    return _dial(get_client, config, *last)


def _dial(get_client: Callable[..., Any], config: StoreConfig, host: str, port: int) -> Any:
    shown = {"ca_cert": config.ca_file, "client_cert": config.cert, "client_cert_key": config.key}
    if config.cert and config.password:
        shown["tls_mode"] = "strict"  # both are shown; without a password the certificate says who we are
    return get_client(
        host=host,
        port=port,
        secure=config.secure,
        username=config.user,
        password=config.password,
        connect_timeout=5,
        send_receive_timeout=60,
        autogenerate_session_id=False,
        **{name: value for name, value in shown.items() if value},
    )


def readable(table: pa.Table) -> pa.Table:
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
