"""Another user of this machine: a process that gave up root's rights and calls Strata's ports.

It starts as root, imports what it needs, and becomes `nobody`: the interpreter may be in a folder that only root reads.
"""

import base64
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import pytest

__all__ = ["NOBODY", "Stranger", "needs_root"]

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
_TIMEOUT_S = 30.0


class Stranger:
    """Asks the other user's process; `user` is whom it becomes."""

    def __init__(self, user: int = NOBODY) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stranger", str(user)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Stranger":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def rest(self, url: str, method: str, path: str, body: object = None, **headers: str) -> int:
        """The status."""
        host = url.removeprefix("http://")
        text = None if body is None else json.dumps(body)
        return int(self._ask("rest", host=host, method=method, path=path, body=text, headers=headers))

    def read(self, url: str, method: str, path: str, body: object = None, **headers: str) -> str:
        """The whole answer as text: its headers and its body."""
        host = url.removeprefix("http://")
        text = None if body is None else json.dumps(body)
        return str(self._ask("read", host=host, method=method, path=path, body=text, headers=headers))

    def grpc(self, address: str, path: str, request: bytes = b"", **metadata: str) -> str:
        """The name of the status; OK as soon as one answer came."""
        shown = {name.replace("_", "-"): value for name, value in metadata.items()}
        body = base64.b64encode(request).decode()
        return str(self._ask("grpc", address=address, path=path, body=body, metadata=shown))

    def leave_behind(self, url: str, method: str, path: str) -> str:
        """Sends a request that changes something and closes its socket at once: the kernel then shows it as root's."""
        return str(self._ask("leave", host=url.removeprefix("http://"), method=method, path=path))

    def _ask(self, kind: str, **values: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, **values}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["status"]


# --- inside the other user's process


def _rest(host: str, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> int:
    with contextlib.closing(_sent(host, method, path, body, headers)) as connection:
        return connection.getresponse().status  # of a stream the head is enough


def _read(host: str, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> str:
    with contextlib.closing(_sent(host, method, path, body, headers)) as connection:
        answer = connection.getresponse()
        head = "".join(f"{name}: {value}\n" for name, value in answer.getheaders())
        return head + answer.read().decode()


def _sent(
    host: str, method: str, path: str, body: str | None, headers: Mapping[str, str]
) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(host, timeout=_TIMEOUT_S)
    given = {"Content-Type": "application/json", **headers} if body is not None else dict(headers)
    connection.request(method, path, body, given)
    return connection


@contextlib.contextmanager
def _channel(address: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel


def _grpc(address: str, path: str, body: str, metadata: Mapping[str, str]) -> str:
    """Every kind of method is a stream on the wire."""
    with _channel(address) as channel:
        call: Any = channel.stream_stream(path)
        answers = call(iter([base64.b64decode(body)]), metadata=tuple(metadata.items()), timeout=_TIMEOUT_S)
        try:
            next(answers)
        except StopIteration:
            return "OK"
        except grpc.RpcError as error:
            return str(error.code().name)
        answers.cancel()
        return "OK"


def _leave(host: str, method: str, path: str) -> str:

    name, _, port = host.partition(":")
    with socket.create_connection((name, int(port)), timeout=_TIMEOUT_S) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode())
    return "gone"


def _serve(user: int) -> None:
    with contextlib.suppress(OSError):
        _rest("127.0.0.1:1", "GET", "/", None, {})  # loads what the libraries load late
    _grpc("127.0.0.1:1", "/x/Y", "", {})
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    doors: dict[str, Any] = {"rest": _rest, "read": _read, "grpc": _grpc, "leave": _leave}
    for line in sys.stdin:
        values = json.loads(line)
        try:
            answer = {"status": doors[values.pop("kind")](**values)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
