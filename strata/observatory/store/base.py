"""What the observatory asks of a store."""

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

__all__ = ["Store"]


class Store(Protocol):
    """The whole surface. Every call may raise StoreUnavailable: the caller keeps what it has and tries again.

    `insert` with the same token and the same rows may be repeated without effect, except into metric_points, which is
    open to foreign writers. `query` takes ClickHouse SQL with {name:Type} parameters, and so does `command`, which
    answers nothing. None of them blocks the loop.
    """

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table: ...

    async def insert(self, table: str, rows: pa.Table, *, token: str) -> None: ...

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None: ...

    async def wait_ready(self) -> None: ...

    @property
    def ready(self) -> bool: ...
