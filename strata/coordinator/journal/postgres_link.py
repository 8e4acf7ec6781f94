"""A connection to PostgreSQL that is opened again whenever it breaks: the one file that imports asyncpg. What is asked
through it is asked until it is answered, so it must be harmless to repeat.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from strata.errors import InvalidConfig, MissingExtra, StrataError

__all__ = ["Connection", "PostgresLink", "shown_database"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
Connection = Any  # asyncpg has no types
Ask = Callable[[Connection], Awaitable[_T]]

_CONNECT_S = 2.0  # to each of the hosts
_ANSWER_S = 5.0  # a statement that takes longer has an unknown outcome, and is asked again on a new connection
_PAUSE_S = 0.1
# Classes of SQLSTATE that pass: connection, resources, shutdown, rollback, a standby that cannot be written, its disk.
_PASSING = frozenset({"08", "53", "57", "40", "25", "58"})


class PostgresLink:
    """One connection. `url` may name several hosts; the one that can be written is found among them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._away_since: float | None = None

    async def ask(self, ask: Ask[_T], within_s: float = _ANSWER_S) -> _T:
        """The answer, however long the database is away. Raises what will not pass: a wrong password, a missing
        right."""
        while True:
            try:
                async with asyncio.timeout(within_s):
                    answer = await ask(await self._connected())
            except BaseException as error:
                self.drop()
                if not _passes(error):
                    raise
                self._note_away(error)
                await asyncio.sleep(_PAUSE_S)
                continue
            self._note_back()
            return answer

    def drop(self) -> None:
        """Ends the connection without a word."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = await _connect(self._url)
        return self._connection

    def _note_away(self, error: BaseException) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            why = str(error) or type(error).__name__
            _log.warning("the journal's database %s does not answer (%s); trying again", shown_database(self._url), why)

    def _note_back(self) -> None:
        if self._away_since is not None:
            _log.warning("the journal's database answers again after %.1f s", time.monotonic() - self._away_since)
            self._away_since = None


def shown_database(url: str) -> str:
    """Where it is, without user and password."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


async def _connect(url: str) -> Connection:
    try:
        import asyncpg  # here: only a coordinator with such a journal needs it
    except ImportError:
        raise MissingExtra("asyncpg", "postgres") from None
    given: dict[str, Any] = {} if "target_session_attrs" in url else {"target_session_attrs": "read-write"}
    try:
        return await asyncpg.connect(
            url, timeout=_CONNECT_S, server_settings={"application_name": "strata coordinator"}, **given
        )
    except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
        raise InvalidConfig(
            f"the journal's database {shown_database(url)} refuses us: {error}", hint="Check STRATA_JOURNAL."
        ) from None
    except (ValueError, asyncpg.ClientConfigurationError) as error:
        raise InvalidConfig(f"STRATA_JOURNAL is not valid: {error}", hint="postgresql://user@host/database") from None


def _passes(error: BaseException) -> bool:
    if isinstance(error, StrataError):
        return False
    import asyncpg

    if isinstance(error, asyncpg.PostgresError):
        return str(error.sqlstate or "")[:2] in _PASSING
    # TimeoutError is an OSError. The last one is asyncpg's own when a connection ends between two of its steps.
    return isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError)
