"""A reverse proxy that misbehaves on chosen requests: answers 503, resets, stalls, or loses the answer."""

import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"


@dataclass(slots=True)
class Trouble:
    """The first `times` requests that `matches` accepts (by method and target) get 503, reset, slow or lose."""

    matches: Callable[[str, str], bool]
    action: str
    times: int = 1
    hits: int = 0


class Proxy:
    """Forwards whole HTTP/1.1 requests to `upstream`, byte for byte, so that signatures stay valid."""

    def __init__(self, upstream: str, trouble: Trouble) -> None:
        address = urlsplit(upstream)
        assert address.hostname is not None
        assert address.port is not None
        self._upstream = (address.hostname, address.port)
        self._trouble = trouble
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            for connection in self._open:
                connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._upstream)
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        answers = threading.Thread(target=_pump, args=(server, client), daemon=True)
        answers.start()
        try:
            while self._one_request(client, server):
                pass
        except OSError:
            pass
        finally:
            for connection in (client, server):
                connection.close()

    def _one_request(self, client: socket.socket, server: socket.socket) -> bool:
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return False
            head += more
        head, _, body = head.partition(b"\r\n\r\n")
        first, *headers = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        lengths = [line.partition(":")[2] for line in headers if line.lower().startswith("content-length:")]
        left = int(lengths[0]) - len(body) if lengths else 0
        action = self._action(method, target)
        if action == "reset":
            client.recv(min(left, 65536) or 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if action == "slow":
            time.sleep(0.5)  # the trouble itself, not a wait for something
        if action == "lose":
            client.shutdown(socket.SHUT_WR)  # the request goes through, its answer does not come back
        if action == "503":
            _drain(client, left)
            client.sendall(_REFUSAL)
            return True
        server.sendall(head + b"\r\n\r\n" + body)
        while left > 0:
            block = client.recv(min(left, 1 << 20))
            if not block:
                return False
            server.sendall(block)
            left -= len(block)
        return True

    def _action(self, method: str, target: str) -> str:
        with self._lock:
            if self._trouble.hits < self._trouble.times and self._trouble.matches(method, target):
                self._trouble.hits += 1
                return self._trouble.action
        return "pass"


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while block := source.recv(1 << 16):
            target.sendall(block)
    except OSError:
        return


def _drain(connection: socket.socket, count: int) -> None:
    while count > 0:
        block = connection.recv(min(count, 1 << 20))
        if not block:
            return
        count -= len(block)
