"""A dataset of very many shards is sixty bytes of request: it is bounded, and nobody waits for it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from strata.coordinator.state.datasets import MAX_NEW_SHARDS
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.status import from_rpc_error
from tests.support.coordinator_process import CHANNEL_OPTIONS, CoordinatorProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
LONG = 2**63 - 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path / "data") as process:
        yield process


class Probe:
    """Asks for health on a connection of its own, again and again; `worst_s` is the longest answer."""

    def __init__(self, address: str) -> None:
        self.worst_s = 0.0
        self.num_answers = 0
        self._ending = threading.Event()
        self._address = address
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Probe":
        self._thread.start()
        eventually("a first answer", lambda: self.num_answers, within_s=60)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        with grpc.insecure_channel(self._address, options=CHANNEL_OPTIONS) as channel:
            check: Any = health_pb2_grpc.HealthStub(channel)
            while not self._ending.is_set():
                began = time.monotonic()
                check.Check(health_pb2.HealthCheckRequest(), timeout=60)
                if self.num_answers:  # the first one opens the connection
                    self.worst_s = max(self.worst_s, time.monotonic() - began)
                self.num_answers += 1


def register(server: CoordinatorProcess, dataset_id: str, total: int, size: int) -> pb.DatasetAck:
    info = pb.DatasetInfo(dataset_id=dataset_id, path="p", total_samples=total, shard_size=size)
    return server.workers.RegisterDataset(info, timeout=120, wait_for_ready=True)


def refused(server: CoordinatorProcess, total: int, size: int) -> StrataError:
    with pytest.raises(grpc.RpcError) as caught:
        register(server, "odd", total, size)
    return from_rpc_error(caught.value, address="here")


@pytest.mark.slow
def test_the_limit_is_named_and_the_largest_holds_nobody_up(server: CoordinatorProcess) -> None:
    error = refused(server, 10**7, 1)
    assert isinstance(error, InvalidArgument)
    assert f"10000000 shards, allowed are at most {MAX_NEW_SHARDS}" in str(error)
    assert "shard_size of at least 40" in error.hint
    names = [f"w{number}" for number in range(20)]
    for name in names:
        server.workers.RegisterWorker(pb.WorkerInfo(worker_id=name), timeout=60)
    with Probe(server.address) as probe:
        assert register(server, "big", MAX_NEW_SHARDS, 1).total_shards == MAX_NEW_SHARDS
        for epoch in (0, 2**62):
            request = pb.ShardRequest(worker_id="w3", dataset_id="big", epoch=epoch)
            assert server.workers.GetDataShard(request, timeout=120).total_shards == MAX_NEW_SHARDS
        server.workers.DeregisterWorker(pb.WorkerInfo(worker_id="w7"), timeout=60)
        server.workers.GetDataShard(pb.ShardRequest(worker_id="w3", dataset_id="big"), timeout=120)
        table = server.control.GetShardTable(
            ct.ShardTableRequest(dataset_id="big", first_shard=MAX_NEW_SHARDS - 50, num_shards=100), timeout=60
        )
    assert sorted(table.shard) == list(range(MAX_NEW_SHARDS - 50, MAX_NEW_SHARDS))
    assert sum(table.num_samples) == MAX_NEW_SHARDS
    assert probe.num_answers > 1
    assert probe.worst_s < 5.0, "on a quiet machine 0.1 s; two busy cores are given time"

    server.kill()
    server.start()
    request = pb.ShardRequest(worker_id="w3", dataset_id="big")
    assert server.workers.GetDataShard(request, timeout=120).total_shards == MAX_NEW_SHARDS


def dealing_ms(server: CoordinatorProcess) -> float | None:
    """The figure as whoever follows the coordinator gets it."""
    for update in server.control.WatchState(ct.WatchRequest(), timeout=60):
        if update.HasField("vitals"):
            figures = update.vitals.figures
            return figures.shard_assignment_ms if figures.HasField("shard_assignment_ms") else None
    raise AssertionError("the stream ended")


def test_each_dealing_is_timed_the_first_one_too(server: CoordinatorProcess) -> None:
    register(server, "d", 129, 1)
    assert dealing_ms(server) is None
    server.workers.RegisterWorker(pb.WorkerInfo(worker_id="w"), timeout=60)
    server.workers.GetDataShard(pb.ShardRequest(worker_id="w", dataset_id="d"), timeout=60)
    first = dealing_ms(server)
    assert first is not None
    assert first > 0
    server.workers.RegisterWorker(pb.WorkerInfo(worker_id="v"), timeout=60)
    eventually("another figure", lambda: dealing_ms(server) not in (None, first), within_s=30)


@pytest.mark.slow
def test_a_thousand_workers_lose_one_and_only_its_shards_move(server: CoordinatorProcess) -> None:
    """How long it takes is measured by hand (docs/specification.md): a test on a busy machine must not time it."""
    for number in range(1_000):
        server.workers.RegisterWorker(pb.WorkerInfo(worker_id=f"w{number}"), timeout=60)
    register(server, "d", 10_010, 1)

    def owners(number: int) -> dict[int, str] | None:
        table = server.control.GetShardTable(ct.ShardTableRequest(dataset_id="d"), timeout=60)
        held = {shard: table.workers[reader] for shard, reader in zip(table.shard, table.reader, strict=True)}
        return held if len(set(held.values())) == number and len(held) == 10_010 else None

    before = eventually("the first dealing", lambda: owners(1_000), within_s=60)
    server.workers.DeregisterWorker(pb.WorkerInfo(worker_id="w500"), timeout=60)
    after = eventually("the next dealing", lambda: owners(999), within_s=60)
    moved = {shard for shard in before if before[shard] != after[shard]}
    assert moved == {shard for shard, owner in before.items() if owner == "w500"}
    assert dealing_ms(server) is not None


def test_odd_numbers_are_refused_with_a_sentence(server: CoordinatorProcess) -> None:
    for total, size in ((10, 0), (10, -1), (0, 1), (-5, 1), (LONG, 1), (LONG, LONG)):
        error = refused(server, total, size)
        assert isinstance(error, InvalidArgument), (total, size)
        assert "'odd'" in str(error), (total, size)


def test_a_shard_larger_than_the_dataset_is_one_shard(server: CoordinatorProcess) -> None:
    assert register(server, "one", 10, LONG).total_shards == 1
    server.workers.RegisterWorker(pb.WorkerInfo(worker_id="w"), timeout=60)
    shard = server.workers.GetDataShard(pb.ShardRequest(worker_id="w", dataset_id="one"), timeout=60)
    assert (shard.start_index, shard.end_index, shard.total_shards) == (0, 10, 1)
    table = server.control.GetShardTable(ct.ShardTableRequest(dataset_id="one"), timeout=60)
    assert (list(table.start_index), list(table.end_index), list(table.num_samples)) == ([0], [10], [10])
    grant = server.workers.ClaimShard(pb.QueueClaim(worker_id="w", dataset_id="one"), timeout=60)
    assert grant.lease.num_rows == 10
