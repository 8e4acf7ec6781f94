"""Batches that wait: in memory, then on disk, then counted as lost; delivered once somebody answers. Against a real
gRPC server that comes and goes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from strata.client.telemetry import Outbox, OutboxConfig, new_batch, send_folder
from strata.protocol.generated import telemetry_pb2 as tm
from strata.protocol.generated import telemetry_pb2_grpc as tm_grpc
from tests.support.waiting import eventually


class _Observatory(tm_grpc.TelemetryServicer):
    def __init__(self) -> None:
        self.batches: dict[str, tm.Batch] = {}

    def ReportOnce(self, request: tm.Batch, context: grpc.ServicerContext) -> tm.BatchAck:  # noqa: N802  # the proto's name
        self.batches[request.batch_id] = request
        return tm.BatchAck(batch_id=request.batch_id)

    @property
    def values(self) -> list[float]:
        return sorted(value for batch in self.batches.values() for value in batch.points.value)


@contextmanager
def _serving(observatory: _Observatory, port: int = 0) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    tm_grpc.add_TelemetryServicer_to_server(observatory, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"127.0.0.1:{bound}"
    finally:
        server.stop(None).wait()


def _batch(value: float) -> tm.Batch:
    batch = new_batch()
    batch.points.value.append(value)
    return batch


def _outbox(folder: Path, address: str | None, **limits: int) -> Outbox:
    return Outbox(lambda: address, OutboxConfig(folder=folder, send_timeout_s=2.0, **limits))  # type: ignore[arg-type]  # ints only


def test_batches_arrive(tmp_path: Path) -> None:
    observatory = _Observatory()  # type: ignore[abstract]  # the streaming call is not used here
    with _serving(observatory) as address:
        outbox = _outbox(tmp_path, address)
        for value in range(5):
            outbox.put(_batch(value))
        assert outbox.close(10.0)
    assert observatory.values == [0, 1, 2, 3, 4]
    assert not list(tmp_path.iterdir())


def test_nothing_is_lost_while_nobody_answers(tmp_path: Path) -> None:
    observatory = _Observatory()  # type: ignore[abstract]  # the streaming call is not used here
    with _serving(observatory) as address:
        pass
    outbox = _outbox(tmp_path, address, memory_batches=2)
    for value in range(6):
        outbox.put(_batch(value))
    eventually("some are on disk", lambda: len(list(tmp_path.iterdir())) >= 3)
    with _serving(observatory, int(address.rpartition(":")[2])):
        assert outbox.close(20.0)
    assert observatory.values == [0, 1, 2, 3, 4, 5]
    assert outbox.dropped == 0


def test_an_offline_run_keeps_everything_and_is_sent_later(tmp_path: Path) -> None:
    outbox = _outbox(tmp_path, None)
    for value in range(4):
        outbox.put(_batch(value))
    assert not outbox.close(0.1)
    assert len(list(tmp_path.iterdir())) == 4
    observatory = _Observatory()  # type: ignore[abstract]  # the streaming call is not used here
    with _serving(observatory) as address:
        assert send_folder(tmp_path, address) == 4
        assert send_folder(tmp_path, address) == 0
    assert observatory.values == [0, 1, 2, 3]


def test_what_finds_no_room_is_counted_and_reported(tmp_path: Path) -> None:
    observatory = _Observatory()  # type: ignore[abstract]  # the streaming call is not used here
    where: list[str | None] = [None]
    outbox = Outbox(lambda: where[0], OutboxConfig(folder=tmp_path, memory_batches=1, disk_bytes=10))
    for value in range(3):
        outbox.put(_batch(value))
    assert outbox.dropped == 3
    with _serving(observatory) as address:
        where[0] = address
        outbox.put(_batch(3))
        assert outbox.close(10.0)
    assert observatory.values == [3]
    assert [batch.dropped_points for batch in observatory.batches.values()] == [3]


def test_a_broken_file_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000001-x.batch").write_bytes(b"\xff\xff\xff")
    observatory = _Observatory()  # type: ignore[abstract]  # the streaming call is not used here
    with _serving(observatory) as address:
        outbox = _outbox(tmp_path, address)
        outbox.put(_batch(1.0))
        assert outbox.close(10.0)
    assert observatory.values == [1.0]
