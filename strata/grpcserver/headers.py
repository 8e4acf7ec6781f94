"""The heads of calls: request headers read through HPACK once per distinct block, response headers as plain literals.

Decoding HPACK in Python costs more than the rest of a small call, and a client sends the same block again and again.
"""

import base64
import binascii
import re
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass

from hpack import Decoder, HPACKError
from hpack.hpack import encode_integer

from strata.grpcserver.frames import ConnectionFault, Fault
from strata.grpcserver.limits import MAX_HEADER_BYTES

__all__ = [
    "NO_TABLE",
    "RESPONSE_HEAD",
    "HeaderReader",
    "Metadata",
    "RequestHead",
    "TrailerReader",
    "build_refusal",
    "build_request",
    "build_trailers",
]

Metadata = tuple[tuple[str, str | bytes], ...]

_REMEMBERED = (
    256  # short distinct blocks per connection: a deadline that differs in each call makes each block distinct
)
_MAX_REMEMBERED_BYTES = 1_024
_MAX_REMEMBERED_FIELDS = 32
_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_MAX_MESSAGE_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """What a call's first frame says. `refusal` is the HTTP status of one that is no gRPC call at all."""

    path: str
    metadata: Metadata
    timeout_s: float | None
    encoding: str
    refusal: int | None


class HeaderReader:
    """One connection's decoder. A block that adds nothing to HPACK's table means the same until one does."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BYTES)
        self._known: dict[bytes, RequestHead] = {}

    def read(self, block: bytes) -> RequestHead:
        known = self._known.get(block)
        if known is not None:
            return known
        table = self._decoder.header_table
        size, count = table.maxsize, len(table.dynamic_entries)
        newest = table.dynamic_entries[0] if count else None
        fields = _decode(self._decoder, block)
        head = _read_head(fields)
        entries = table.dynamic_entries
        same = table.maxsize == size and len(entries) == count and (entries[0] if entries else None) is newest
        if not same or len(self._known) >= _REMEMBERED:
            self._known.clear()
        if same and len(block) <= _MAX_REMEMBERED_BYTES and len(fields) <= _MAX_REMEMBERED_FIELDS:
            self._known[block] = head
        return head


class TrailerReader:
    """The same for a client: what a server says at the head and at the end of its answer."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BYTES)

    def read(self, block: bytes) -> dict[str, str | bytes]:
        """All fields by name; a status message as the text that it stands for."""
        found = dict(_read_metadata(name, value) for name, value in _decode(self._decoder, block))
        found["grpc-message"] = urllib.parse.unquote(str(found.get("grpc-message", "")))
        return found


def _decode(decoder: Decoder, block: bytes) -> list[tuple[bytes, bytes]]:
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
    except (HPACKError, UnicodeError, ValueError, IndexError) as error:
        raise ConnectionFault(Fault.COMPRESSION_ERROR, f"headers that cannot be decoded: {error}") from error


def _read_head(fields: list[tuple[bytes, bytes]]) -> RequestHead:
    method = path = content_type = timeout = b""
    encoding = b"identity"
    metadata: list[tuple[str, str | bytes]] = []
    for name, value in fields:
        match name:
            case b":method":
                method = value
            case b":path":
                path = value
            case b"content-type":
                content_type = value
            case b"grpc-timeout":
                timeout = value
            case b"grpc-encoding":
                encoding = value
            case b":scheme" | b":authority" | b"te" | b"grpc-accept-encoding":
                pass
            case _:
                metadata.append(_read_metadata(name, value))
    refusal = 405 if method != b"POST" else None if content_type.startswith(b"application/grpc") else 415
    return RequestHead(
        path=path.decode("latin-1"),
        metadata=tuple(metadata),
        timeout_s=_read_timeout(timeout) if timeout else None,
        encoding=encoding.decode("latin-1"),
        refusal=refusal,
    )


def _read_metadata(name: bytes, value: bytes) -> tuple[str, str | bytes]:
    text = name.decode("latin-1")
    if not text.endswith("-bin"):
        return text, value.decode("latin-1")
    try:
        return text, base64.b64decode(value + b"=" * (-len(value) % 4))
    except binascii.Error as error:
        raise ConnectionFault(Fault.PROTOCOL_ERROR, f"metadata {text} is not base64") from error


def _read_timeout(value: bytes) -> float:
    match = _TIMEOUT.fullmatch(value)
    if match is None:
        raise ConnectionFault(Fault.PROTOCOL_ERROR, f"grpc-timeout {value!r} is no duration")
    return int(match[1]) * _UNITS[match[2]]


def _literal(name: bytes, value: bytes) -> bytes:
    """Never indexed and not Huffman-coded, so that no state is shared with the peer."""
    return b"\x00" + bytes(encode_integer(len(name), 7)) + name + bytes(encode_integer(len(value), 7)) + value


# First on a connection: no dynamic table will be used, which a peer that made its table smaller must hear.
NO_TABLE = b"\x20"
RESPONSE_HEAD = b"\x88" + _literal(b"content-type", b"application/grpc")
_OK_TRAILERS = _literal(b"grpc-status", b"0")


def build_request(path: str, authority: str, metadata: Iterable[tuple[str, str]]) -> bytes:
    """The head of a call that we make ourselves."""
    fixed = b"\x83\x86"  # POST, http
    block = fixed + _literal(b":path", path.encode()) + _literal(b":authority", authority.encode())
    fields = (("te", "trailers"), ("content-type", "application/grpc"), *metadata)
    return block + b"".join(_literal(name.encode("ascii"), value.encode()) for name, value in fields)


def build_refusal(status: int) -> bytes:
    """The whole answer to what is no gRPC call."""
    return _literal(b":status", str(status).encode())


def build_trailers(code: int, message: str, metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
    """The end of a call."""
    if code == 0 and not metadata:
        return _OK_TRAILERS
    block = _literal(b"grpc-status", str(code).encode())
    if message:
        text = message.encode(errors="replace")[:_MAX_MESSAGE_BYTES].decode(errors="ignore")
        block += _literal(b"grpc-message", urllib.parse.quote(text, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}").encode())
    for name, value in metadata:
        raw = base64.b64encode(value) if isinstance(value, bytes) else value.encode("ascii", errors="replace")
        block += _literal(name.encode("ascii"), raw)
    return block
