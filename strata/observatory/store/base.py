"""What the observatory asks of a store."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from strata.errors import StoreUnavailable, StrataError
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table

__all__ = ["Store", "own_rows"]

_log = logging.getLogger(__name__)


class Store(Protocol):
    """The whole surface. Every call may raise StoreUnavailable: the caller keeps what it has and tries again.

    `insert` with the same token and the same rows may be repeated without effect, except into metric_points, which is
    open to foreign writers. `query` takes ClickHouse SQL with {name:Type} parameters, and so does `command`, which
    answers nothing. `curves` answers with the buckets that `sql.curves` asks for. None of them blocks the loop.
    """

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table: ...

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table: ...

    async def insert(self, table: str, rows: Table, *, token: str) -> None: ...

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None: ...

    async def wait_ready(self) -> None: ...

    @property
    def ready(self) -> bool: ...


async def own_rows(store: Store, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The rows that `sql` selects from tables of ours; none on somebody else's server, where we may not have them."""
    try:
        return (await store.query(sql, parameters)).to_rows()
    except StoreUnavailable:
        raise
    except StrataError as error:
        _log.debug("a table of ours cannot be read: %s", error.message)
        return []
