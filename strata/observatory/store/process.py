"""The store process: sole owner of the embedded engine's folder, or the one client of a ClickHouse server.

Started by exec with one end of a socket pair (never forked: chDB hangs in a fork). It lives as long as its parent: when
the socket closes, it closes the engine in order and exits.
"""

import contextlib
import faulthandler
import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from strata.errors import Internal, InvalidConfig
from strata.lockfile import FolderLock
from strata.observatory.background.lean import keep_pandas_out
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.curves import read_buckets
from strata.observatory.store.engine import Engine
from strata.observatory.store.failures import to_error
from strata.observatory.store.frames import pack, recv_frame
from strata.observatory.store.guest import Guest
from strata.observatory.store.native import encode
from strata.observatory.store.schema import ensure_schema, has_points, set_retention
from strata.pages import forget_start

__all__ = ["main"]

_READERS = 2
_CURVES = ("where", "buckets", "which")
_FINISH_S = 3.0
_CLOSE_S = 5.0  # with the above; less than the parent waits

Request = tuple[dict[str, Any], bytearray]  # what is asked, and the rows of an insert


class _Replies:
    """Frames from several threads, one at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        with self._lock:
            for piece in pack(header, payload):
                self._sock.sendall(piece)

    def fail(self, number: int, error: Exception) -> None:
        known = to_error(error)
        self.send({"id": number, "error": {"code": known.code, "message": known.message, "hint": known.hint}})


def main(fd: int) -> int:
    """Serves requests until the parent goes away."""
    keep_pandas_out()
    for number in (signal.SIGINT, signal.SIGTERM):  # both may reach the whole group; the parent decides when we stop
        signal.signal(number, signal.SIG_IGN)
    sock = socket.socket(fileno=fd)
    replies = _Replies(sock)
    first = recv_frame(sock)
    if first is None:
        return 0
    config = StoreConfig(**first[0]["config"])
    try:
        lock = _lock_folder(config)
        engines, limits, note = _open(config)
        guest = Guest(config, limits)
    except Exception as error:
        with contextlib.suppress(ConnectionError):  # a parent that stopped meanwhile needs no answer
            replies.fail(0, error)
        return 1
    forget_start()
    with contextlib.suppress(ConnectionError):  # then the loop below ends at once and closes the engines
        replies.send({"id": 0, "limits": limits, "note": note})
    _serve(sock, replies, engines, guest)
    lock.release()
    gc.freeze()  # the parent waits for our end: the interpreter's last collections have nothing to find
    return 0


def _open(config: StoreConfig) -> tuple[list[Engine], str, str]:
    """The engines, why only the public table is there for us (empty: all are), and what else could not be done."""
    writer = Engine(config)
    limits = note = ""
    try:
        ensure_schema(writer.command, config.database, config.cluster)
    except InvalidConfig:
        raise
    except Exception as error:
        if config.path is not None or not has_points(writer.command, config.database):
            raise
        limits = f"tables cannot be created: {to_error(error).message}"
    if config.retention_days is not None and not limits:
        try:
            set_retention(writer.command, config.database, config.retention_days, config.cluster)
        except Exception as error:
            if config.path is not None:
                raise
            note = f"STRATA_RETENTION_DAYS has no effect: {to_error(error).message}"
    return [writer, *(Engine(config) for _ in range(_READERS))], limits, note


def _serve(sock: socket.socket, replies: _Replies, engines: list[Engine], guest: Guest) -> None:
    writes: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
    reads: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
    questions: queue.SimpleQueue[Request | None] = queue.SimpleQueue()  # long ones hold up no page
    threads = [threading.Thread(target=_work, args=(engines[0], writes, replies))]
    threads += [threading.Thread(target=_work, args=(engine, reads, replies)) for engine in engines[1:]]
    threads += [threading.Thread(target=_work, args=(guest, questions, replies))]
    for thread in threads:
        thread.start()
    while (frame := recv_frame(sock)) is not None:
        {"query": reads, "curves": reads, "ask": questions}.get(frame[0]["op"], writes).put(frame)
    faulthandler.dump_traceback_later(_CLOSE_S, exit=True)  # the engine may hang; its data is safe on a hard exit
    writes.put(None)
    questions.put(None)
    for _ in range(_READERS):
        reads.put(None)
    ends_at = time.monotonic() + _FINISH_S
    for thread in threads:
        thread.join(max(0.0, ends_at - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        os._exit(2)  # closing chDB under a running query can crash
    guest.close()
    for engine in reversed(engines):
        engine.close()


def _work(engine: Engine | Guest, requests: "queue.SimpleQueue[Request | None]", replies: _Replies) -> None:
    while (request := requests.get()) is not None:
        number = request[0]["id"]
        try:
            replies.send({"id": number}, _answer(engine, *request))
        except ConnectionError:
            return  # the parent is gone; the main thread sees it too
        except Exception as error:
            try:
                replies.fail(number, error)
            except ConnectionError:
                return


def _answer(engine: Engine | Guest, header: dict[str, Any], payload: bytearray) -> bytes:
    if isinstance(engine, Guest):
        return engine.ask(header["sql"])
    match header["op"]:
        case "query":
            return engine.query(header["sql"], header["parameters"])
        case "curves":
            return encode(read_buckets(engine, header["database"], *(header[name] for name in _CURVES)))
        case "insert":
            engine.insert(header["table"], header["names"], payload, header["token"])
        case "command":
            engine.command(header["sql"], header["parameters"])
        case other:
            raise Internal(f"the store process knows no operation {other!r}")
    return b""


def _lock_folder(config: StoreConfig) -> FolderLock:
    """chDB's own refusal does not say who holds the folder. A server needs no lock of ours."""
    folder = Path(config.path) if config.path is not None else None
    lock = FolderLock(folder.parent if folder else Path(), "store")
    if folder is not None:
        lock.acquire()
    return lock


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
