"""The Telemetry service: one stream per sender, each batch acknowledged when it is safe on disk."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any, cast

import grpc

from strata.errors import Busy, StrataError
from strata.grpcserver.call import Call
from strata.grpcserver.connection import Gate
from strata.grpcserver.server import Server
from strata.observatory.batch.columns import parse
from strata.observatory.ingest.intake import Accepted, Intake
from strata.observatory.ingest.ownership import check_batch
from strata.protocol.generated.telemetry_pb2 import DESCRIPTOR, Batch, BatchAck
from strata.protocol.status import to_status, to_text, to_trailers
from strata.trust.table import Admission

__all__ = ["TelemetryServer"]

_MAX_MESSAGE = 60 << 20  # less than what a connection may have unread; a batch of 200,000 points has 5 MB
_MAX_ON_THE_WAY = 128 << 20  # bytes of batches that are not on the disk yet
# Batches of one stream that are on their way to the disk at once; more wait in the socket.
_IN_FLIGHT = 16


class TelemetryServer:
    """gRPC on its own port, behind the same gate as the coordinator's. `task_of` names a known run's task."""

    def __init__(self, intake: Intake, gate: Gate, task_of: Callable[[str], str | None]) -> None:
        self._server = Server(gate, _MAX_MESSAGE)
        servicer = _Servicer(intake, task_of)
        service = DESCRIPTOR.services_by_name["Telemetry"].full_name
        self._server.add_registered_method_handlers(service, _handlers(servicer))

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Serves there; returns the port, which the system chose when it was 0."""
        return await self._server.start(host, port, tls)

    async def stop(self) -> None:
        await self._server.stop(grace=1.0)


def _handlers(servicer: "_Servicer") -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
    """As the generated code would register them, but batches stay bytes: the spool keeps them exactly as they came."""
    return {
        "ReportOnce": grpc.unary_unary_rpc_method_handler(
            cast("Any", servicer.report_once), response_serializer=BatchAck.SerializeToString
        ),
        "Report": grpc.stream_stream_rpc_method_handler(
            cast("Any", servicer.report), response_serializer=BatchAck.SerializeToString
        ),
    }


class _Servicer:
    def __init__(self, intake: Intake, task_of: Callable[[str], str | None]) -> None:
        self._intake = intake
        self._task_of = task_of
        self._on_the_way = 0

    async def report_once(self, raw: bytes, context: Call) -> BatchAck:
        try:
            with self._room_for(raw):
                batch = self._read_batch(raw, context)
                accepted = await self._intake.accept(batch, raw)
        except StrataError as error:
            await context.abort(to_status(error), to_text(error), to_trailers(error))
        return _ack(batch.batch_id, accepted)

    async def report(self, request_iterator: AsyncIterator[bytes], context: Call) -> AsyncIterator[BatchAck]:
        """Acknowledgements come in the order of the batches; a refused batch does not end the stream."""
        answers: asyncio.Queue[asyncio.Task[BatchAck] | None] = asyncio.Queue(_IN_FLIGHT)
        reader = asyncio.create_task(self._read(request_iterator, answers, context))
        try:
            while (answer := await answers.get()) is not None:
                yield await answer
            await reader
        finally:
            reader.cancel()

    async def _read(
        self, batches: AsyncIterator[bytes], answers: "asyncio.Queue[asyncio.Task[BatchAck] | None]", context: Call
    ) -> None:
        async for raw in batches:
            await answers.put(asyncio.create_task(self._answer(raw, context)))
        await answers.put(None)  # a sender that breaks off instead cancels the whole call

    async def _answer(self, raw: bytes, context: Call) -> BatchAck:
        batch_id = ""
        try:
            with self._room_for(raw):
                batch = self._read_batch(raw, context)
                batch_id = batch.batch_id
                accepted = await self._intake.accept(batch, raw)
        except StrataError as error:
            return BatchAck(batch_id=batch_id, error_code=error.code, error_message=error.message)
        return _ack(batch_id, accepted)

    @contextlib.contextmanager
    def _room_for(self, raw: bytes) -> Generator[None]:
        """Raises Busy when many large batches wait for the disk; the sender tries again."""
        if self._on_the_way and self._on_the_way + len(raw) > _MAX_ON_THE_WAY:
            raise Busy(f"batches of {self._on_the_way:,} bytes are on their way to the disk", hint="Send it again.")
        self._on_the_way += len(raw)
        try:
            yield
        finally:
            self._on_the_way -= len(raw)

    def _read_batch(self, raw: bytes, context: Call) -> Batch:
        batch = parse(raw)
        assert isinstance(context.caller, Admission)
        check_batch(batch, context.caller.visitor, self._task_of)
        return batch


def _ack(batch_id: str, accepted: Accepted) -> BatchAck:
    return BatchAck(
        batch_id=batch_id,
        accepted_points=accepted.points,
        accepted_logs=accepted.logs,
        refused_points=accepted.refused.points,
        refused_logs=accepted.refused.logs,
    )
