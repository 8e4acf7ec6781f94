"""Errors survive the wire: class, message, hint and the missing, and never more than a status may carry."""

from typing import Any

import grpc
import pytest

from strata.error_codes import error_types
from strata.errors import (
    BarrierBroken,
    CheckpointAborted,
    CoordinatorUnavailable,
    DeadlineExceeded,
    Fenced,
    Internal,
    InvalidArgument,
    MissingExtra,
    StrataError,
)
from strata.protocol.status import from_rpc_error, to_status, to_text, to_trailers


class _Failed(grpc.RpcError):
    """A failed call as a client sees it."""

    def __init__(self, code: grpc.StatusCode, details: str, trailers: Any = ()) -> None:
        self._answer = code, details, trailers

    def code(self) -> grpc.StatusCode:
        return self._answer[0]

    def details(self) -> str:
        return self._answer[1]

    def trailing_metadata(self) -> Any:
        return self._answer[2]


def across(error: StrataError) -> StrataError:
    return from_rpc_error(_Failed(to_status(error), to_text(error), to_trailers(error)), address="here:1")


@pytest.mark.parametrize("cls", error_types().values(), ids=lambda cls: cls.code)
def test_every_error_has_a_status_and_comes_back_as_itself(cls: type[StrataError]) -> None:
    error = MissingExtra("torch", "torch") if cls is MissingExtra else cls("it failed: ä", hint="do this")
    back = across(error)
    assert type(back) is cls
    assert (back.message, back.hint) == (error.message, error.hint)


def test_who_is_missing_comes_back() -> None:
    assert across(BarrierBroken("m", missing=("a", "b"))).missing == ("a", "b")  # type: ignore[attr-defined]  # of its class
    assert across(CheckpointAborted("m", missing=(3,))).missing == (3,)  # type: ignore[attr-defined]  # of its class


def test_a_crowd_fits_into_the_trailers() -> None:
    error = BarrierBroken("ä" * 10_000, missing=tuple(f"worker-{number}" for number in range(10_000)))
    size = sum(len(key) + len(value) for key, value in to_trailers(error))
    assert size + 3 * len(to_text(error).encode()) < 8_192
    back = across(error)
    assert back.missing[0] == "worker-0"  # type: ignore[attr-defined]  # of its class
    assert back.message.endswith("…")


def test_answers_of_strangers_become_our_errors() -> None:
    nobody = from_rpc_error(_Failed(grpc.StatusCode.UNAVAILABLE, "… Connection refused"), address="h:1")
    assert type(nobody) is CoordinatorUnavailable
    assert nobody.message == "no coordinator answers at h:1 (connection refused)"
    assert type(from_rpc_error(_Failed(grpc.StatusCode.DEADLINE_EXCEEDED, ""), address="h:1")) is DeadlineExceeded
    assert type(from_rpc_error(_Failed(grpc.StatusCode.INVALID_ARGUMENT, "bad"), address="h:1")) is InvalidArgument
    assert type(from_rpc_error(_Failed(grpc.StatusCode.DATA_LOSS, ""), address="h:1")) is Internal
    future = _Failed(grpc.StatusCode.ABORTED, "new", (("strata-error-code", "of_a_newer_release"),))
    assert type(from_rpc_error(future, address="h:1")) is Internal


def test_fenced_is_a_failed_precondition() -> None:
    assert to_status(Fenced("f")) is grpc.StatusCode.FAILED_PRECONDITION
