"""A telemetry service that keeps what it is sent, on a real gRPC server that comes and goes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from strata.protocol.generated import telemetry_pb2 as tm
from strata.protocol.generated import telemetry_pb2_grpc as tm_grpc

__all__ = ["ReceivingObservatory", "serving"]


class ReceivingObservatory(tm_grpc.TelemetryServicer):
    """By batch id, as the real one: a batch that comes again counts once."""

    def __init__(self) -> None:
        self.batches: dict[str, tm.Batch] = {}

    def ReportOnce(self, request: tm.Batch, context: grpc.ServicerContext) -> tm.BatchAck:  # noqa: N802  # the proto's name
        self.batches[request.batch_id] = request
        return tm.BatchAck(batch_id=request.batch_id)

    @property
    def values(self) -> list[float]:
        return sorted(value for batch in self.batches.values() for value in batch.points.value)


@contextmanager
def serving(observatory: ReceivingObservatory, port: int = 0) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    tm_grpc.add_TelemetryServicer_to_server(observatory, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"127.0.0.1:{bound}"
    finally:
        server.stop(None).wait()
