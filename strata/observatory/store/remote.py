"""A ClickHouse server through clickhouse-connect: the one file that imports it, and only where a server is set."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from strata.errors import MissingExtra
from strata.observatory.store.config import StoreConfig

__all__ = ["Remote"]


class Remote:
    """A connection to the first of the servers that answers. A server takes settings with each query."""

    def __init__(self, config: StoreConfig, settings: Mapping[str, Any]) -> None:
        try:
            import clickhouse_connect
            from clickhouse_connect.driver.compression import get_compressor
        except ImportError:
            raise MissingExtra("clickhouse-connect", "lean") from None
        self._connect = partial(_connect, clickhouse_connect.get_client, config)
        self._compressor = get_compressor
        self._settings = dict(settings)
        self._client: Any = self._connect()

    def command(self, sql: str, parameters: Mapping[str, Any]) -> str:
        found = self._asked(lambda client: client.command(sql, parameters=dict(parameters) or None))
        return str(found) if isinstance(found, str | int) else ""

    def query(self, sql: str, parameters: Mapping[str, Any]) -> bytes:
        given = {"parameters": dict(parameters) or None, "settings": self._settings, "fmt": "Native"}
        return bytes(self._asked(lambda client: client.raw_query(sql, **given)))

    def insert(self, table: str, names: Sequence[str], block: bytes | bytearray, settings: Mapping[str, Any]) -> None:
        self._asked(lambda client: self._send(client, table, names, bytes(block), dict(settings)))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _send(self, client: Any, table: str, names: Sequence[str], block: bytes, settings: dict[str, Any]) -> None:
        by = client.write_compression
        compressor: Any = self._compressor(by)
        packed = compressor.compress_block(block) + (compressor.flush() or b"")
        client.raw_insert(table, names, packed, settings=settings, fmt="Native", compression=by)

    def _asked(self, ask: Callable[[Any], Any]) -> Any:
        """Of a server that does not answer the next call looks for one that does; this one fails, for nobody knows what
        became of it."""
        try:
            if self._client is None:
                self._client = self._connect()
            return ask(self._client)
        except Exception as error:
            if type(error).__name__ == "OperationalError":
                self.close()
            raise


def _connect(get_client: Callable[..., Any], config: StoreConfig) -> Any:
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
