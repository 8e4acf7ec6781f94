"""The parent's side of the store process: starts it, speaks to it, and starts it again when it dies."""

import asyncio
import contextlib
import itertools
import logging
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from strata.error_codes import rebuild_error
from strata.errors import DataDirInUse, StoreUnavailable, StrataError
from strata.observatory.background.part import cancel, spawn
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.frames import pack, read_frame
from strata.observatory.store.native import decode, encode
from strata.observatory.store.schema import NO_ATTEMPTS, RAW_ROLLUP
from strata.observatory.store.sql import curves
from strata.observatory.store.standstill import Standstill, busy_s
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table

__all__ = ["SupervisedStore"]

_log = logging.getLogger(__name__)
_BACKOFF_S = (0.1, 0.3, 1.0, 2.0, 5.0)
_STOP_S = 6.0  # more than the child gives itself: what it says of its own is better
_GONE_S = 1.5  # from the kill until the system has cleaned up
_READ_BUFFER = 1 << 20
_LOOK_S = 3.0
_READS = ("query", "curves", "ask")

Answer = tuple[dict[str, Any], bytes]


class SupervisedStore:
    """A Store in a child process. Calls fail with StoreUnavailable while it is away; nothing is retried here."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self._ready = asyncio.Event()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._asked: dict[int, tuple[str, float]] = {}  # what for, and when (monotonic); the oldest first
        self._writer: asyncio.StreamWriter | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self.restarts = 0
        self.limits = ""
        self.problem: str | None = "starting"

    @property
    def ready(self) -> bool:
        return self._ready.is_set()

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def start(self) -> None:
        """Returns at once; `wait_ready` waits for the engine."""
        self._task = spawn(self._supervise(), "store")

    async def stop(self) -> None:
        """Lets running requests finish, closes the engine in order, and leaves no process behind."""
        self._stopping.set()
        if self._writer is not None:
            self._writer.close()
        if self._task is None:
            return
        try:
            await asyncio.wait([self._task], timeout=_STOP_S)  # the task ends with the child
        finally:  # also when nobody has the time to wait: no child may keep the folder
            if self._child is not None and self._child.returncode is None:
                _log.warning("the store did not close in time and is killed; what it has not got is in the spool")
                self._child.kill()
        await asyncio.wait([self._task], timeout=_GONE_S)
        await cancel(self._task)

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        _, payload = await self._ask({"op": "query", "sql": self._text(sql), "parameters": dict(parameters or {})})
        return decode(payload)

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table:
        if self._config.path is None:  # a server's points would have to cross the network to be folded
            return await self.query(*curves(where, buckets, which))
        header = {"op": "curves", "where": dict(where), "buckets": buckets, "which": which}
        _, payload = await self._ask({**header, "database": self._config.database})
        return decode(payload)

    async def ask(self, question: str) -> Table:
        """Somebody's own SQL, within the limits of guest.py, one at a time."""
        _, payload = await self._ask({"op": "ask", "sql": question})
        return decode(payload)

    async def insert(self, table: str, rows: Table, *, token: str) -> None:
        header = {"op": "insert", "table": f"{self._config.database}.{table}", "token": token}
        await self._ask({**header, "names": list(rows.columns)}, encode(rows))

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        text = sql.replace("{db}", self._config.database)
        await self._ask({"op": "command", "sql": text, "parameters": dict(parameters or {})})

    def _text(self, sql: str) -> str:
        if self.limits:
            sql = sql.replace("{db}.series_rollup", RAW_ROLLUP).replace("{db}.attempts", NO_ATTEMPTS)
        return sql.replace("{db}", self._config.database)

    async def _ask(self, header: dict[str, Any], payload: bytes = b"") -> Answer:
        writer = self._writer
        if writer is None or not self.ready:
            raise StoreUnavailable(f"the metric store is not available ({self.problem})")
        number = next(self._numbers)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number], self._asked[number] = future, (header["op"], time.monotonic())
        try:
            for piece in pack({**header, "id": number}, payload):
                writer.write(piece)
            await writer.drain()
            return await future
        except (ConnectionError, RuntimeError) as error:
            raise StoreUnavailable(f"the metric store went away ({error})") from None
        finally:
            self._waiting.pop(number, None)
            del self._asked[number]

    async def _supervise(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                lived = await self._run_once()
            except OSError as error:  # no memory, no descriptors, no room: it may pass
                lived, self.problem = False, f"its process cannot be started: {error.strerror}"
                _log.error("the metric store: %s", self.problem)
            if self._stopping.is_set():
                return
            failures = 0 if lived else failures + 1
            self.restarts += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)]):
                    await self._stopping.wait()

    async def _run_once(self) -> bool:
        """One life of the child; whether it was ever ready."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "strata.observatory.store.process", str(theirs.fileno())]
        try:
            self._child = await asyncio.create_subprocess_exec(
                *command, pass_fds=[theirs.fileno()], stdin=asyncio.subprocess.DEVNULL
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=_READ_BUFFER)
        try:
            if not self._stopping.is_set():  # while the child was being started, when there was nothing to close yet
                await self._greet(reader, self._writer)
                await self._read_watched(reader, self._child)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the child is gone; its exit code follows
        except ValueError as error:
            self.problem = f"its answers make no sense: {error}"
            _log.error("the metric store is started again: %s", self.problem)
            self._child.kill()
        except DataDirInUse as error:
            self.problem = error.message  # an owner that is about to leave, or one that stays: say who, keep trying
            _log.warning("%s", error.message)
        except StrataError as error:
            self.problem = error.message
            _log.error("the metric store cannot be opened: %s", error.message)
        return await self._bury()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pack({"config": asdict(self._config)}):
            writer.write(piece)
        header, _ = await read_frame(reader)
        if "error" in header:
            raise _rebuilt(header["error"])
        self.problem = None
        self.limits = header["limits"]
        if self.limits:
            _log.warning("only metric_points of the metric store is there for us: %s", self.limits)
        if header["note"]:
            _log.warning("the metric store: %s", header["note"])
        self._ready.set()
        _log.info("metric store ready (%s)", self._config.label)

    async def _read_watched(self, reader: asyncio.StreamReader, child: asyncio.subprocess.Process) -> None:
        if self._config.path is None:  # a server may take its time, and the client has its own patience
            await self._read(reader)
            return
        watching = spawn(self._watch(child), "store-watch")
        try:
            await self._read(reader)
        finally:
            await cancel(watching)

    async def _watch(self, child: asyncio.subprocess.Process) -> None:
        """Ends an engine that will never answer, so that the next one can."""
        standstill = Standstill()
        while True:
            await asyncio.sleep(_LOOK_S)
            asked_at = next((at for _, at in self._asked.values()), None)
            read_at = next((at for what, at in self._asked.values() if what in _READS), None)
            reason = standstill.look(asked_at, read_at, busy_s(child.pid), time.monotonic())
            if reason is not None:
                _log.error("the metric store is killed and started again: %s", reason)
                child.kill()
                return

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            header, payload = await read_frame(reader)
            future = self._waiting.pop(header["id"], None)
            if future is None or future.done():
                continue  # who asked has given up
            if "error" in header:
                future.set_exception(_rebuilt(header["error"]))
            else:
                future.set_result((header, payload))

    async def _bury(self) -> bool:
        lived = self.ready
        self._ready.clear()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        assert self._child is not None
        code = await self._child.wait()
        if lived and not self._stopping.is_set():
            self.problem = f"its process ended with code {code}"
            _log.warning("the store process ended with code %s; starting it again", code)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(StoreUnavailable("the metric store went away before it answered"))
        self._waiting.clear()
        return lived


def _rebuilt(error: dict[str, str]) -> StrataError:
    rebuilt = rebuild_error(error["code"], error["message"], hint=error["hint"])
    return rebuilt or StoreUnavailable(error["message"], hint=error["hint"])
