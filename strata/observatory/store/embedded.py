"""The engine inside of this process, chDB: the one file that imports it.

Its package imports pyarrow at its start, for tables that nobody here asks for: 20 MB of memory, where it is installed
at all. It gets a stand-in.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from strata.errors import MissingExtra

__all__ = ["DatabaseError", "Embedded"]

_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\'`\t\n"})


class DatabaseError(Exception):
    """What the engine says when it does not do what was asked. The driver for servers calls it the same."""


class Embedded:
    """One connection. The engine keeps settings per connection: what is set before `readonly` stays for good."""

    def __init__(self, path: str, settings: Mapping[str, Any]) -> None:
        try:
            self._connection = _engine().connect(str(Path(path).resolve()))
        except RuntimeError as error:
            raise DatabaseError(str(error)) from None
        for name, value in settings.items():
            self.command(f"SET {name} = '{value}'", {})

    def command(self, sql: str, parameters: Mapping[str, Any]) -> str:
        return self._ask(sql, parameters, "TabSeparated").decode(errors="replace").strip()

    def query(self, sql: str, parameters: Mapping[str, Any]) -> bytes:
        try:
            return self._ask(sql, parameters, "Native")
        except DatabaseError:
            # What was written when a query failed half-way stands before the next answer (chDB 26.9), which nobody
            # could read then.
            with contextlib.suppress(DatabaseError):
                self._ask("SELECT 1", {}, "TabSeparated")
            raise

    def pieces(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """The answer of `query` piece by piece, each of whole blocks, as the engine makes it: a long one takes less
        memory so, and less time, much of which is memory's (docs/adr/0037)."""
        try:
            with self._connection.send_query(sql, "Native", params=_all_bound(parameters)) as answer:
                for piece in answer:
                    yield piece.bytes()
        except RuntimeError as error:
            raise DatabaseError(str(error)) from None

    def insert(self, table: str, names: Sequence[str], block: bytes | bytearray, settings: Mapping[str, Any]) -> None:
        """The engine takes what it has to parse from a file, which need not be on a disk."""
        columns = ", ".join(f"`{name}`" for name in names)
        given = ", ".join(f"{name} = {_quoted(value)}" for name, value in settings.items())
        with os.fdopen(os.memfd_create("block"), "wb") as file:
            file.write(block)
            file.flush()
            source = f"FROM INFILE '/proc/self/fd/{file.fileno()}' SETTINGS {given} FORMAT Native"
            self._ask(f"INSERT INTO {table} ({columns}) {source}", {}, "TabSeparated")

    def close(self) -> None:
        self._connection.close()

    def _ask(self, sql: str, parameters: Mapping[str, Any], form: str) -> bytes:
        try:
            answer: bytes = self._connection.query(sql, form, params=_all_bound(parameters)).bytes() or b""
        except Exception as error:
            raise DatabaseError(str(error)) from None
        return answer


def _quoted(value: Any) -> str:
    return f"'{str(value).translate(_ESCAPES)}'"


def _all_bound(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {name: _bound(value) for name, value in parameters.items()}


def _bound(value: Any) -> str:
    """A parameter as its type reads it: a text bare but with escapes, a list as it stands in SQL."""
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_quoted(one) if isinstance(one, str) else _bound(one) for one in value)}]"
    return str(value)


def _engine() -> Any:
    try:
        with _stand_in("pyarrow"):
            import chdb
    except ImportError:
        raise MissingExtra("chdb", "server") from None
    return chdb


class _Nothing(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


@contextlib.contextmanager
def _stand_in(name: str) -> Iterator[None]:
    """In place of a module that is not loaded yet."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _Nothing(name)
    try:
        yield
    finally:
        del sys.modules[name]
