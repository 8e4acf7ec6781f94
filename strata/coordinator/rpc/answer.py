"""One frame around every call: it is counted, a StrataError becomes its status, a bug INTERNAL and a log entry."""

import functools
import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

from strata.coordinator.meter import Meter
from strata.errors import Internal, StrataError, Unauthenticated
from strata.grpcserver.call import Call
from strata.protocol.status import to_status, to_text, to_trailers

__all__ = ["Context", "answered", "bearer_token", "check_token", "fail"]

_log = logging.getLogger(__name__)

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")
Context = Call


def answered(
    method: Callable[[Any, _Request, Context], Awaitable[_Reply]],
) -> Callable[[Any, _Request, Context], Awaitable[_Reply]]:
    """For unary methods of a servicer that has a `meter`."""

    @functools.wraps(method)
    async def call(self: Any, request: _Request, context: Context) -> _Reply:
        meter: Meter = self.meter
        meter.count(method.__name__)
        try:
            return await method(self, request, context)
        except StrataError as error:
            await fail(context, error)
        except Exception:
            _log.exception("%s failed", method.__name__)
            await fail(context, Internal(f"{method.__name__} failed inside the coordinator; its log says why"))

    return call


async def fail(context: Context, error: StrataError) -> NoReturn:
    """Ends the call with the error's status, message and trailers."""
    await context.abort(to_status(error), to_text(error), to_trailers(error))


def bearer_token(context: Context) -> str:
    """The token of the call's metadata, or nothing."""
    metadata = dict(context.invocation_metadata())
    return str(metadata.get("authorization", "")).removeprefix("Bearer ")


def check_token(context: Context, token: str, what: str) -> None:
    """Refuses a call that may run commands unless it carries the token, on loopback too: a login node has others."""
    if not (token and hmac.compare_digest(bearer_token(context).encode(), token.encode())):
        raise Unauthenticated(f"{what} needs the cluster's token")
