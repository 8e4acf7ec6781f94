"""A small ClickHouse-compatible HTTP server over chDB: the driver, the SQL and the data are real, only the server
around them is not. It stands for "a server through CH_HOST" and for the foreign clients that write to it.
"""

import base64
import gzip
import re
import ssl
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import chdb
import lz4.frame  # type: ignore[import-untyped]  # has no stubs
import pyarrow as pa

_PLAIN = {"query", "database", "default_format", "session_id", "query_id", "client_protocol_version", "compress"}
_PLAIN |= {
    "wait_end_of_query",
    "send_progress_in_http_headers",
    "http_headers_progress_interval_ms",
    "user",
    "password",
}
_local = threading.local()
_path = ""


def _connection(settings: dict[str, str] | None = None) -> Any:
    """One per thread and settings: these are a query's, and no other query knows them. After `readonly` none is set."""
    settings = dict(settings or {})
    last = {"readonly": settings.pop("readonly")} if "readonly" in settings else {}
    known: dict[str, Any] = _local.__dict__.setdefault("connections", {})
    key = repr((sorted(settings.items()), last))
    if key not in known:
        known[key] = chdb.connect(_path)
        for name, value in {**settings, **last}.items():
            known[key].query(f"SET {name} = '{value}'")
    return known[key]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        match self.headers.get("Content-Encoding"):
            case "gzip":
                body = gzip.decompress(body)
            case "lz4":
                body = lz4.frame.decompress(body)
            case "zstd":
                body = pa.CompressedInputStream(pa.BufferReader(body), "zstd").read()
        self._answer(body)

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, body: bytes) -> None:
        args = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query, keep_blank_values=True).items()}
        try:
            basic = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            _check_rights(
                self.headers.get("X-ClickHouse-User") or basic.partition(":")[0],
                args.get("query", "") or body[:200].decode(errors="replace"),
            )
            status, headers, data = 200, {}, _run(args, body)
        except Exception as error:
            code = re.search(r"Code: (\d+)", str(error))
            status, data = 500, str(error).encode()
            headers = {"X-ClickHouse-Exception-Code": code[1] if code else "1"}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _run(args: dict[str, str], body: bytes) -> bytes:
    sql = args.get("query", "")
    head, _, rest = body.partition(b"\n")
    if not sql and re.match(rb"\s*INSERT\b.*\bFORMAT\b", head, re.IGNORECASE):
        sql, body = head.decode(), rest
    elif not sql:
        sql, body = body.decode(), b""
    elif body and not re.match(r"\s*INSERT\b", sql, re.IGNORECASE):
        sql, body = f"{sql}\n{body.decode()}", b""
    parameters = {name[6:]: value for name, value in args.items() if name.startswith("param_")}
    settings = {name: value for name, value in args.items() if name not in _PLAIN and not name.startswith("param_")}
    connection = _connection({} if body else settings)
    if args.get("database"):
        connection.query(f"USE `{args['database']}`")
    if body:
        with tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            target, kind = re.split(r"\s+FORMAT\s+", sql.strip(), maxsplit=1, flags=re.IGNORECASE)
            target = re.sub(r"\s+SETTINGS\s+.*$", "", target, flags=re.IGNORECASE | re.DOTALL)
            connection.query(f"{target} FROM INFILE '{file.name}' {_settings(settings)} FORMAT {kind}")
        return b""
    kind = args.get("default_format", "TabSeparated")
    found = re.search(r"\sFORMAT\s+(\w+)\s*$", sql, re.IGNORECASE)
    if found:
        kind, sql = found[1], sql[: found.start()]
    try:
        return bytes(connection.query(sql, kind, params=parameters).bytes())
    except Exception:
        connection.query("SELECT 1")  # what it had written stands before the next answer (chDB 26.9)
        raise


# What a server's accounts may not do: its words when they try are a real server's.
_FORBIDDEN = {"viewer": "CREATE|ALTER|INSERT|TRUNCATE|DROP", "writer": "CREATE|ALTER|TRUNCATE|DROP"}


def _check_rights(user: str, sql: str) -> None:
    found = re.match(rf"\s*({_FORBIDDEN.get(user, 'NOTHING')})\b", sql, re.IGNORECASE)
    if found is not None:
        raise PermissionError(
            f"Code: 497. DB::Exception: {user}: Not enough privileges. To execute this query, it's necessary to have "
            f"the grant {found[1].upper()} ON *.*. (ACCESS_DENIED) (version 24.8.14.39 (official build))"
        )


def _settings(settings: dict[str, str]) -> str:
    quoted = {name: value.replace("'", "") for name, value in settings.items()}
    return "SETTINGS " + ", ".join(f"{name} = '{value}'" for name, value in quoted.items()) if quoted else ""


if __name__ == "__main__":
    _path = sys.argv[1]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if sys.argv[2:]:  # over TLS: its certificate, the key, and the CA of those who may come
        certificate, key, clients = sys.argv[2:]
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    _connection()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
