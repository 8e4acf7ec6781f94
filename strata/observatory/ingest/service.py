"""The Telemetry service: one stream per sender, each batch acknowledged when it is safe on disk."""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import grpc.aio

from strata.errors import StrataError, Unauthenticated
from strata.observatory.ingest.batch import parse
from strata.observatory.intake import Intake
from strata.protocol.generated.telemetry_pb2 import BatchAck
from strata.protocol.status import to_status, to_trailers

__all__ = ["TelemetryServer"]

_log = logging.getLogger(__name__)
_MAX_MESSAGE = 64 << 20
# Batches of one stream that are on their way to the disk at once; more wait in the socket.
_IN_FLIGHT = 16


class TelemetryServer:
    """gRPC on its own port. `token` is asked for when the bind is public."""

    def __init__(self, intake: Intake, address: str, token: str | None) -> None:
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", _MAX_MESSAGE),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ]
        )
        self._server.add_generic_rpc_handlers((_handlers(_Servicer(intake, token)),))
        self.port = self._server.add_insecure_port(address)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(grace=1.0)


def _handlers(servicer: "_Servicer") -> grpc.GenericRpcHandler:
    """As the generated code would register it, but batches stay bytes: the spool keeps them exactly as they came."""
    methods: dict[str, Any] = {
        "ReportOnce": grpc.unary_unary_rpc_method_handler(
            cast("Any", servicer.report_once), response_serializer=BatchAck.SerializeToString
        ),
        "Report": grpc.stream_stream_rpc_method_handler(
            cast("Any", servicer.report), response_serializer=BatchAck.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler("strata.telemetry.Telemetry", methods)


class _Servicer:
    def __init__(self, intake: Intake, token: str | None) -> None:
        self._intake = intake
        self._token = token

    async def report_once(self, raw: bytes, context: Any) -> BatchAck:
        await self._check_token(context)
        try:
            batch = parse(raw)
            accepted = await self._intake.accept(batch, raw)
        except StrataError as error:
            await context.abort(to_status(error), error.message, to_trailers(error))
        return BatchAck(batch_id=batch.batch_id, accepted_points=accepted.points, accepted_logs=accepted.logs)

    async def report(self, request_iterator: AsyncIterator[bytes], context: Any) -> AsyncIterator[BatchAck]:
        """Acknowledgements come in the order of the batches; a refused batch does not end the stream."""
        await self._check_token(context)
        answers: asyncio.Queue[asyncio.Task[BatchAck] | None] = asyncio.Queue(_IN_FLIGHT)
        reader = asyncio.create_task(self._read(request_iterator, answers))
        try:
            while (answer := await answers.get()) is not None:
                yield await answer
            await reader
        finally:
            reader.cancel()

    async def _read(
        self, batches: AsyncIterator[bytes], answers: "asyncio.Queue[asyncio.Task[BatchAck] | None]"
    ) -> None:
        async for raw in batches:
            await answers.put(asyncio.create_task(self._answer(raw)))
        await answers.put(None)  # a sender that breaks off instead cancels the whole call

    async def _answer(self, raw: bytes) -> BatchAck:
        batch_id = ""
        try:
            batch = parse(raw)
            batch_id = batch.batch_id
            accepted = await self._intake.accept(batch, raw)
        except StrataError as error:
            return BatchAck(batch_id=batch_id, error_code=error.code, error_message=error.message)
        return BatchAck(batch_id=batch_id, accepted_points=accepted.points, accepted_logs=accepted.logs)

    async def _check_token(self, context: Any) -> None:
        if self._token is None:
            return
        given = dict(context.invocation_metadata() or ()).get("authorization", "")
        if not hmac.compare_digest(str(given).encode(), f"Bearer {self._token}".encode()):
            error = Unauthenticated("telemetry on a public address needs the token")
            await context.abort(to_status(error), error.message, to_trailers(error))
