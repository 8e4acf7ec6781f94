"""The door of a coordinator that others can reach: every call, streams and health included, needs the token."""

import hmac
from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc

from strata.errors import Unauthenticated
from strata.protocol.status import to_status, to_trailers

__all__ = ["TokenGate"]


class TokenGate(grpc.aio.ServerInterceptor):
    """Lets a call through when its bearer token is right, else ends it before its handler sees it."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        error = Unauthenticated("this coordinator needs the cluster's token")

        async def refuse(_requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            await context.abort(to_status(error), error.message, to_trailers(error))

        # As a stream it answers before it has read anything, whatever kind of call it stands in for.
        self._refusal: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(cast("Any", refuse))

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        given = dict(handler_call_details.invocation_metadata or ()).get("authorization", "")
        if hmac.compare_digest(str(given).encode(), self._expected):
            return await continuation(handler_call_details)
        return self._refusal
