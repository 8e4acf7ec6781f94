"""A server of S3 that keeps objects in memory: `s3_memory.py PORT_FILE MB_PER_S LATENCY_MS`.

Each connection carries so many megabytes per second each way, and each answer waits so long, as Amazon says of its own
("one concurrent request for each 85 to 90 MB/s", 100 to 200 ms at most). It hashes and writes nothing, so that what
is measured is how well a client uses such a store, and not what a server costs on the same cores.
"""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

__all__: list[str] = []

_PIECE = 1 << 20
_BUFFER = 256 << 10  # of the kernel, so that a sender feels the pace
_KEPT = 1 << 30  # bytes; older objects are forgotten

Object = list[memoryview]


class Bucket:
    """Objects by their whole path, and uploads that are not complete yet."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.uploads: dict[str, dict[int, Object]] = {}
        self.lock = threading.Lock()
        self.numbers = count(1)

    def keep(self, key: str, content: Object) -> None:
        self.objects.pop(key, None)
        self.objects[key] = content
        while len(self.objects) > 1 and sum(map(_size, self.objects.values())) > _KEPT:
            del self.objects[next(iter(self.objects))]


class Pace:
    """Sleeps so that bytes pass no faster than the rate."""

    def __init__(self, bytes_per_s: float) -> None:
        self._rate = bytes_per_s
        self._free_at = 0.0

    def passed(self, number: int) -> None:
        now = time.perf_counter()
        self._free_at = max(self._free_at, now) + number / self._rate
        if self._free_at - now > 0.001:
            time.sleep(self._free_at - now)


class Connection:
    """One connection, request after request."""

    def __init__(self, peer: socket.socket, bucket: Bucket, bytes_per_s: float, latency_s: float) -> None:
        self._peer = peer
        self._bucket = bucket
        self._pace = Pace(bytes_per_s)
        self._latency_s = latency_s
        self._rest = b""

    def serve(self) -> None:
        try:
            while head := self._head():
                method, target, headers = head
                if headers.get("expect", "").lower() == "100-continue":
                    self._peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = self._body(int(headers.get("content-length", "0")))
                content: Object = [body]
                if "aws-chunked" in headers.get("content-encoding", ""):
                    content = list(_dechunked(body))
                time.sleep(self._latency_s)
                url = urlsplit(target)
                query = parse_qs(url.query, keep_blank_values=True)
                self._answer(method, unquote(url.path), query, headers, content)
        except OSError:
            return
        finally:
            self._peer.close()

    def _head(self) -> tuple[str, str, dict[str, str]] | None:
        data = self._rest
        while b"\r\n\r\n" not in data:
            more = self._peer.recv(_PIECE)
            if not more:
                return None
            data += more
        head, _, self._rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        return method, target, {name.lower(): value.strip() for name, _, value in pairs}

    def _body(self, size: int) -> memoryview:
        body = memoryview(bytearray(size))
        done = min(size, len(self._rest))
        body[:done] = self._rest[:done]
        self._rest = self._rest[done:]
        while done < size:
            number = self._peer.recv_into(body[done : done + _PIECE])
            if not number:
                raise OSError("the client went away")
            done += number
            self._pace.passed(number)
        return body

    def _answer(
        self, method: str, key: str, query: dict[str, list[str]], headers: dict[str, str], content: Object
    ) -> None:
        bucket = self._bucket
        with bucket.lock:
            if method == "POST" and "uploads" in query:
                name = str(next(bucket.numbers))
                bucket.uploads[name] = {}
                return self._xml(f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>", "Initiate")
            if method == "PUT" and "uploadId" in query:
                bucket.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = content
                return self._send(200, etag=True)
            if method == "POST" and "uploadId" in query:
                parts = bucket.uploads.pop(query["uploadId"][0])
                bucket.keep(key, [piece for number in sorted(parts) for piece in parts[number]])
                return self._xml(f"<CompleteMultipartUploadResult><Key>{escape(key)}</Key><ETag>x</ETag>", "Complete")
            if method == "PUT":
                if headers.get("if-none-match") == "*" and key in bucket.objects:
                    return self._send(412)
                if "x-amz-copy-source" in headers:
                    bucket.keep(key, bucket.objects["/" + unquote(headers["x-amz-copy-source"]).lstrip("/")])
                    return self._xml("<CopyObjectResult><ETag>x</ETag>", "Copy")
                bucket.keep(key, content)
                return self._send(200, etag=True)
            if method == "DELETE":
                bucket.objects.pop(key, None)
                return self._send(204)
            if "list-type" in query:
                return self._list(key.strip("/"), query)
            found = bucket.objects.get(key)
        if found is None:
            return self._send(404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
        return self._give(method, found, headers.get("range"))

    def _list(self, name: str, query: dict[str, list[str]]) -> None:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        keys = [key.removeprefix(f"/{name}/") for key in sorted(self._bucket.objects)]
        rows, folders = [], set()
        for key in keys:
            if not key.startswith(prefix):
                continue
            below = key[len(prefix) :]
            if delimiter and delimiter in below:
                folders.add(prefix + below.partition(delimiter)[0] + delimiter)
                continue
            size = _size(self._bucket.objects[f"/{name}/{key}"])
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><ETag>x</ETag>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        rows += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders)]
        text = (
            f"<ListBucketResult><Name>{name}</Name><IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>"
        )
        self._send(200, text.encode())

    def _give(self, method: str, found: Object, wanted: str | None) -> None:
        total = _size(found)
        first, last = 0, total - 1
        if wanted:
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first, last = int(begin), min(int(end or last), last)
        extra = f"Content-Range: bytes {first}-{last}/{total}\r\n" if wanted else ""
        self._send(206 if wanted else 200, length=last - first + 1, etag=True, extra=extra)
        if method != "HEAD":
            for piece in _sliced(found, first, last + 1):
                self._peer.sendall(piece)
                self._pace.passed(len(piece))

    def _xml(self, text: str, what: str) -> None:
        end = text[1 : text.index(">")]
        assert end.startswith(what)
        self._send(200, f"{text}</{end}>".encode())

    def _send(
        self, code: int, body: bytes = b"", *, length: int | None = None, etag: bool = False, extra: str = ""
    ) -> None:
        lines = f"HTTP/1.1 {code} .\r\nContent-Length: {len(body) if length is None else length}\r\n{extra}"
        lines += f"Last-Modified: {formatdate(usegmt=True)}\r\n"
        if etag:
            lines += 'ETag: "0123456789abcdef0123456789abcdef"\r\n'
        self._peer.sendall(lines.encode() + b"\r\n" + body)


def _size(content: Object) -> int:
    return sum(map(len, content))


def _dechunked(body: memoryview) -> Iterator[memoryview]:
    """The content of a body in chunks with a trailer, as S3's own clients send it when they add a checksum."""
    at = 0
    while True:
        end = at + bytes(body[at : at + 200]).index(b"\r\n")
        size = int(bytes(body[at:end]).partition(b";")[0], 16)
        if size == 0:
            return
        yield body[end + 2 : end + 2 + size]
        at = end + 2 + size + 2


def _sliced(found: Object, first: int, end: int) -> Iterator[memoryview]:
    at = 0
    for piece in found:
        low, high = max(first - at, 0), min(end - at, len(piece))
        for start in range(low, high, _PIECE):
            yield piece[start : min(start + _PIECE, high)]
        at += len(piece)


def main(port_file: Path, bytes_per_s: float, latency_s: float) -> None:
    bucket = Bucket()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)  # accepted ones inherit it
        port_file.write_text(str(server.getsockname()[1]))
        while True:
            peer, _ = server.accept()
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serve: Callable[[], None] = Connection(peer, bucket, bytes_per_s, latency_s).serve
            threading.Thread(target=serve, daemon=True).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) * 1e6, float(sys.argv[3]) / 1e3)
