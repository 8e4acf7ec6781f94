"""Batches that wait: in memory, then on disk, then counted as lost; delivered once somebody answers. Against a real
gRPC server that comes and goes."""

from pathlib import Path

import grpc
import pytest

from strata.client.batches import new_batch
from strata.client.telemetry import Outbox, OutboxConfig, send_folder
from strata.protocol.generated import telemetry_pb2 as tm
from tests.support.telemetry import ReceivingObservatory, serving
from tests.support.waiting import eventually


def _batch(value: float) -> tm.Batch:
    batch = new_batch()
    batch.points.value.append(value)
    return batch


def _outbox(folder: Path, address: str | None, **limits: int) -> Outbox:
    return Outbox(lambda: address, OutboxConfig(folder=folder, send_timeout_s=2.0, **limits))  # type: ignore[arg-type]  # ints only


def test_batches_arrive(tmp_path: Path) -> None:
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        outbox = _outbox(tmp_path, address)
        for value in range(5):
            outbox.put(_batch(value))
        assert outbox.close(10.0)
    assert observatory.values == [0, 1, 2, 3, 4]
    assert not list(tmp_path.iterdir())


def test_nothing_is_lost_while_nobody_answers(tmp_path: Path) -> None:
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        pass
    outbox = _outbox(tmp_path, address, memory_batches=2)
    for value in range(6):
        outbox.put(_batch(value))
    eventually("some are on disk", lambda: len(list(tmp_path.iterdir())) >= 3)
    with serving(observatory, int(address.rpartition(":")[2])):
        assert outbox.close(20.0)
    assert observatory.values == [0, 1, 2, 3, 4, 5]
    assert outbox.dropped == 0


def test_an_offline_run_keeps_everything_and_is_sent_later(tmp_path: Path) -> None:
    outbox = _outbox(tmp_path, None)
    for value in range(4):
        outbox.put(_batch(value))
    assert not outbox.close(0.1)
    assert len(list(tmp_path.iterdir())) == 4
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        assert send_folder(tmp_path, address) == 4
        assert send_folder(tmp_path, address) == 0
    assert observatory.values == [0, 1, 2, 3]


def test_what_finds_no_room_is_counted_and_reported(tmp_path: Path) -> None:
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    where: list[str | None] = [None]
    outbox = Outbox(lambda: where[0], OutboxConfig(folder=tmp_path, memory_batches=1, disk_bytes=10))
    for value in range(3):
        outbox.put(_batch(value))
    assert outbox.dropped == 3
    with serving(observatory) as address:
        where[0] = address
        outbox.put(_batch(3))
        assert outbox.close(10.0)
    assert observatory.values == [3]
    assert [batch.dropped_points for batch in observatory.batches.values()] == [3]


def test_a_broken_file_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000001-x.batch").write_bytes(b"\xff\xff\xff")
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        outbox = _outbox(tmp_path, address)
        outbox.put(_batch(1.0))
        assert outbox.close(10.0)
    assert observatory.values == [1.0]


class _Choosy(ReceivingObservatory):
    """Refuses a batch that holds a negative value, or fails over it as a server with a bug does."""

    def __init__(self, status: grpc.StatusCode) -> None:
        super().__init__()
        self.status = status
        self.asked = 0

    def ReportOnce(self, request: tm.Batch, context: grpc.ServicerContext) -> tm.BatchAck:  # noqa: N802  # the proto's name
        self.asked += 1
        if any(value < 0 for value in request.points.value):
            context.abort(self.status, "negative")
        return super().ReportOnce(request, context)


@pytest.mark.parametrize("status", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL])
def test_one_refused_point_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: grpc.StatusCode
) -> None:
    observatory = _Choosy(status)  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        outbox = _outbox(tmp_path, address)
        batch = new_batch()
        batch.series.add(index=0, metric="loss")
        for value in (1.0, 2.0, -3.0, 4.0, 5.0):
            batch.points.series.append(0)
            batch.points.step.append(int(abs(value)))
            batch.points.value.append(value)
        batch.logs.add(message="a line")
        outbox.put(batch)
        outbox.put(_batch(6.0))
        assert outbox.close(30.0)
    assert observatory.values == [1, 2, 4, 5, 6]
    assert [line.message for each in observatory.batches.values() for line in each.logs] == ["a line"]
    assert outbox.dropped == 1
    assert [record.message for record in caplog.records] == [
        "metric 'loss' at step 3 was refused and is lost: negative"
    ]


def test_what_is_secured_is_on_disk_until_it_is_delivered(tmp_path: Path) -> None:
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        pass
    outbox = _outbox(tmp_path, address)
    for value in range(3):
        outbox.put(_batch(value))
    assert outbox.secure()
    kept = [tm.Batch.FromString(path.read_bytes()) for path in tmp_path.glob("*.batch")]
    assert sorted(value for batch in kept for value in batch.points.value) == [0, 1, 2]
    with serving(observatory, int(address.rpartition(":")[2])):
        assert outbox.close(20.0)
    assert observatory.values == [0, 1, 2]
    assert not list(tmp_path.iterdir())


def test_what_another_process_left_in_the_folder_is_sent_too(tmp_path: Path) -> None:
    observatory = ReceivingObservatory()  # type: ignore[abstract]  # the streaming call is not used here
    with serving(observatory) as address:
        outbox = _outbox(tmp_path, address)
        other = _outbox(tmp_path, None)
        other.put(_batch(7.0))
        other.close(0.1)
        eventually("it is sent", lambda: observatory.values == [7.0], within_s=30)
        assert outbox.close(10.0)
