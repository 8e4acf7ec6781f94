"""Servers that alerts are sent to, and that keep what they got: a web server and an SMTP server."""

import contextlib
import json
import socketserver
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["SECRET", "Mailbox", "Receiver", "Trickler"]

SECRET = "T0-very-secret"


class Receiver:
    """A web server that keeps what is posted to it: /ok answers 200, /broken 500, /moved a redirect to /ok."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.callers: list[str | None] = []
        kept, callers = self.posts, self.callers

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept.append((self.path, json.loads(body)))
                callers.append(self.headers["Authorization"])
                self.send_response({"/broken": 500, "/moved": 302}.get(self.path.partition("?")[0], 200))
                self.send_header("Location", "/ok?moved")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}?{SECRET}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def told(self, path: str) -> list[dict[str, Any]]:
        return [body for seen, body in self.posts if seen.startswith(path)]


class Mailbox:
    """An SMTP server that takes every mail."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        kept = self.mails

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 here")
                while line := self.rfile.readline().decode().strip():
                    if line.upper() == "DATA":
                        self._say("354 go on")
                        lines = iter(lambda: self.rfile.readline().decode(), ".\r\n")
                        kept.append("".join(lines))
                    self._say("221 bye" if line.upper() == "QUIT" else "250 ok")

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])


class Trickler:
    """A server that says `first` and then a byte now and then, without end."""

    def __init__(self, first: bytes = b"") -> None:
        self._stopping = threading.Event()
        stopping = self._stopping

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):  # it was hung up on
                    self.wfile.write(first)
                    while not stopping.wait(0.05):
                        self.wfile.write(b"x")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def __enter__(self) -> "Trickler":
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.server.shutdown()
        self.server.server_close()
