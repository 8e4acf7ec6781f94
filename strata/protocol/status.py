"""Errors across gRPC and back: a StrataError becomes a status whose trailers carry its code, and is rebuilt from them.

The text is the message alone, so that a plain client in any language reads a sentence.
"""

import json
from collections.abc import Iterable
from typing import Any

import grpc

from strata.error_codes import rebuild_error
from strata.errors import (
    Busy,
    CoordinatorUnavailable,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    StrataError,
    Unauthenticated,
)

__all__ = ["CODE_KEY", "DETAIL_KEY", "from_rpc_error", "to_status", "to_text", "to_trailers"]

CODE_KEY = "strata-error-code"
DETAIL_KEY = "strata-error-bin"  # "-bin": free bytes, so names in any script survive

# gRPC refuses trailers above 8 KB, and text may triple on the wire: an error must not be lost because it is long.
_MAX_TEXT_BYTES = 1_500
_MAX_MISSING_BYTES = 2_000

# What a status without our trailers means: another server's answer, or gRPC's own.
_FALLBACK: dict[grpc.StatusCode, type[StrataError]] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Busy,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.UNAVAILABLE: CoordinatorUnavailable,
}


def to_status(error: StrataError) -> grpc.StatusCode:
    """The one gRPC status of an error's class."""
    return grpc.StatusCode[error.grpc_status]


def to_text(error: StrataError) -> str:
    """The message, cut to what a status may carry."""
    text = error.message.encode(errors="replace")
    if len(text) <= _MAX_TEXT_BYTES:
        return error.message
    return text[:_MAX_TEXT_BYTES].decode(errors="ignore") + "…"


def to_trailers(error: StrataError) -> tuple[tuple[str, str | bytes], ...]:
    """Trailing metadata from which `from_rpc_error` rebuilds the error: its code, hint and who is missing."""
    detail: dict[str, Any] = {"hint": error.hint}
    missing = _fitting(getattr(error, "missing", ()))
    if missing:
        detail["missing"] = missing
    return ((CODE_KEY, error.code), (DETAIL_KEY, json.dumps(detail).encode()))


def from_rpc_error(error: grpc.RpcError, *, address: str) -> StrataError:
    """The StrataError a failed call stands for. `address` is named when nothing answered there."""
    status, text, trailers = _parts(error)
    detail = json.loads(trailers.get(DETAIL_KEY, b"{}"))
    code = str(trailers.get(CODE_KEY, ""))
    rebuilt = rebuild_error(code, text, hint=detail.get("hint"), missing=detail.get("missing", ()))
    return rebuilt or _from_plain_status(status, text, address)


def _fitting(missing: Iterable[str | int]) -> list[str | int]:
    """As many of the missing as the trailers have room for; the message counts the rest."""
    room = _MAX_MISSING_BYTES
    fitting: list[str | int] = []
    for item in missing:
        room -= len(str(item)) + 4
        if room < 0:
            break
        fitting.append(item)
    return fitting


def _from_plain_status(status: grpc.StatusCode, text: str, address: str) -> StrataError:
    cls = _FALLBACK.get(status, Internal)
    if cls is CoordinatorUnavailable:
        return CoordinatorUnavailable(f"no coordinator answers at {address} ({_first_line(text)})")
    if cls is DeadlineExceeded:
        return DeadlineExceeded(f"{address} did not answer in time")
    return cls(text or status.name)


def _first_line(text: str) -> str:
    """gRPC repeats every address it tried; the last part says what happened."""
    if "Connection refused" in text:
        return "connection refused"
    return text.splitlines()[0][:160] if text else "unavailable"


def _parts(error: grpc.RpcError) -> tuple[grpc.StatusCode, str, dict[str, str | bytes]]:
    """grpc's sync and aio errors offer the same readings under one name each."""
    call: Any = error
    trailers: Iterable[tuple[str, str | bytes]] = call.trailing_metadata() or ()
    return call.code(), call.details() or "", dict(trailers)
