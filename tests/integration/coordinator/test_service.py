"""The coordinator as a server: its doors, its limits, its stream of events, and its end when the disk is full."""

import json
import os
import resource
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from strata.errors import BarrierExpired, Conflict, InvalidArgument, NotFound, StrataError
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.status import from_rpc_error
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """One for all tests of this file that do not end it; leases are long, so nobody dies here."""
    with CoordinatorProcess(tmp_path_factory.mktemp("service") / "data") as process:
        yield process


def refusal(call: Any, message: object) -> tuple[grpc.StatusCode, StrataError]:
    with pytest.raises(grpc.RpcError) as caught:
        call(message, timeout=60)
    return caught.value.code(), from_rpc_error(caught.value, address="here")


def join(server: CoordinatorProcess, *worker_ids: str, task_id: str) -> None:
    for worker_id in worker_ids:
        server.workers.RegisterWorker(pb.WorkerInfo(worker_id=worker_id, task_id=task_id), timeout=60)


# --- doors


def test_health_and_reflection_answer(server: CoordinatorProcess) -> None:
    checks: Any = health_pb2_grpc.HealthStub(server.channel)  # its types know no methods
    for service in ("", "coordinator.Coordinator", "strata.control.Control", "strata.agents.Agents"):
        answer = checks.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    services = ProtoReflectionDescriptorDatabase(server.channel).get_services()
    assert {"coordinator.Coordinator", "grpc.health.v1.Health"} <= set(services)


def test_a_second_process_on_the_folder_is_refused_with_the_owner_s_pid(server: CoordinatorProcess) -> None:
    second = CoordinatorProcess(server.folder)
    second.launch()
    assert second.process is not None
    assert second.process.wait(30) != 0
    assert f"in use by another coordinator, pid {server.pid}" in second.log()
    assert server.state()["term"] == 1


# --- bad input


def test_bad_input_gets_a_status_and_a_sentence_and_changes_nothing(server: CoordinatorProcess) -> None:
    join(server, "bad-1", "bad-2", task_id="bad")
    server.workers.RegisterDataset(pb.DatasetInfo(dataset_id="bad", total_samples=10, shard_size=1), timeout=60)
    before = server.state()
    workers = server.workers
    invalid, missing = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
    cases: list[tuple[Any, object, grpc.StatusCode, type[StrataError]]] = [
        (workers.RegisterWorker, pb.WorkerInfo(), invalid, InvalidArgument),
        (workers.RegisterWorker, pb.WorkerInfo(worker_id="x" * 3_000_000), invalid, InvalidArgument),
        (workers.RegisterWorker, pb.WorkerInfo(worker_id="x", gpu_count=-1), invalid, InvalidArgument),
        (workers.RegisterWorker, pb.WorkerInfo(worker_id="bad-1"), grpc.StatusCode.ALREADY_EXISTS, Conflict),
        (workers.Heartbeat, pb.HeartbeatRequest(worker_id="nobody"), missing, NotFound),
        (
            workers.Heartbeat,
            pb.HeartbeatRequest(worker_id="bad-1", status=pb.WorkerStatus(state=99)),  # type: ignore[arg-type]  # wrong on purpose
            invalid,
            InvalidArgument,
        ),
        (workers.RegisterDataset, pb.DatasetInfo(dataset_id="zero", shard_size=1), invalid, InvalidArgument),
        (
            workers.RegisterDataset,
            pb.DatasetInfo(dataset_id="bad", total_samples=10, shard_size=2),
            grpc.StatusCode.ALREADY_EXISTS,
            Conflict,
        ),
        (workers.GetDataShard, pb.ShardRequest(worker_id="bad-1", dataset_id="nope"), missing, NotFound),
        (
            workers.GetDataShard,
            pb.ShardRequest(worker_id="bad-1", dataset_id="bad", epoch=-1),
            invalid,
            InvalidArgument,
        ),
        (
            workers.NotifyCheckpoint,
            pb.CheckpointInfo(worker_id="bad-1", checkpoint_id="k", type=9),  # type: ignore[arg-type]  # wrong on purpose
            invalid,
            InvalidArgument,
        ),
        (
            workers.NotifyCheckpoint,
            pb.CheckpointInfo(worker_id="bad-1", checkpoint_id="k", step=-1),
            invalid,
            InvalidArgument,
        ),
        (workers.GetLatestCheckpoint, pb.RecoveryRequest(worker_id="nobody"), missing, NotFound),
        (workers.WaitBarrier, pb.BarrierRequest(worker_id="bad-1", barrier_id="b", step=-1), invalid, InvalidArgument),
        (workers.WaitBarrier, pb.BarrierRequest(worker_id="bad-1"), invalid, InvalidArgument),
        (
            workers.WaitBarrier,
            pb.BarrierRequest(worker_id="bad-1", barrier_id="b", policy=9),  # type: ignore[arg-type]  # wrong on purpose
            invalid,
            InvalidArgument,
        ),
    ]
    for call, message, status, cls in cases:
        code, error = refusal(call, message)
        assert (code, isinstance(error, cls)) == (status, True), error
        assert 10 < len(error.message) < 400
    assert server.state() == before


def test_a_message_of_10_mb_is_refused_before_it_is_read(server: CoordinatorProcess) -> None:
    status, _ = refusal(server.workers.RegisterWorker, pb.WorkerInfo(worker_id="x" * 10_000_000))
    assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert server.state()["term"] == 1, "and the server lives"


def test_a_changed_participant_count_is_refused_while_the_first_waits(server: CoordinatorProcess) -> None:
    join(server, "count-1", "count-2", task_id="count")
    first = server.workers.WaitBarrier.future(
        pb.BarrierRequest(worker_id="count-1", barrier_id="b", expected_participants=2), timeout=60
    )
    second = pb.BarrierRequest(worker_id="count-2", barrier_id="b", expected_participants=3)

    def refused() -> bool:
        """Until the first has arrived, the second one opens the barrier itself and waits."""
        try:
            server.workers.WaitBarrier(second, timeout=0.2)
        except grpc.RpcError as error:
            return error.code() is grpc.StatusCode.INVALID_ARGUMENT
        return False

    eventually("the refusal", refused)
    second.expected_participants = 2
    assert server.workers.WaitBarrier(second, timeout=60).participants == 2
    assert first.result().arrival_order == 1


# --- waiting


def test_a_deadline_or_a_cancelled_call_withdraws_the_arrival(server: CoordinatorProcess) -> None:
    join(server, "late-1", "late-2", task_id="late")
    arrival = pb.BarrierRequest(worker_id="late-1", barrier_id="b")
    with pytest.raises(grpc.RpcError) as caught:
        server.workers.WaitBarrier(arrival, timeout=0.2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    call = server.workers.WaitBarrier.future(arrival, timeout=60)
    call.cancel()
    other = pb.BarrierRequest(worker_id="late-2", barrier_id="b", timeout_ms=500)
    status, error = refusal(server.workers.WaitBarrier, other)
    assert status is grpc.StatusCode.DEADLINE_EXCEEDED
    assert isinstance(error, BarrierExpired)
    assert "1 of 2 arrived" in error.message
    assert error.missing == ("late-1",)


def test_an_expiry_with_a_crowd_missing_still_reaches_the_client(server: CoordinatorProcess) -> None:
    join(server, *(f"member-of-the-crowd-{number}" for number in range(300)), task_id="crowd")
    arrival = pb.BarrierRequest(worker_id="member-of-the-crowd-0", barrier_id="b", timeout_ms=300)
    _, error = refusal(server.workers.WaitBarrier, arrival)
    assert isinstance(error, BarrierExpired)
    assert error.message.endswith("and 291 more")
    assert len(error.missing) > 50


def test_ranks_of_a_checkpoint_are_counted_for_who_can_count(server: CoordinatorProcess) -> None:
    join(server, "counted-0", "counted-1", "counted-2", task_id="counted")
    begin: dict[str, Any] = {"step": 5, "storage_path": "p"}
    named = server.workers.BeginCheckpoint(pb.CheckpointBegin(worker_id="counted-0", **begin), timeout=60)
    counted = server.workers.BeginCheckpoint(
        pb.CheckpointBegin(worker_id="counted-1", counts_ranks=True, **begin), timeout=60
    )
    assert (list(named.ranks), named.num_ranks, list(counted.ranks), counted.num_ranks) == ([0, 1, 2], 0, [], 3)
    server.workers.DeregisterWorker(pb.WorkerInfo(worker_id="counted-0"), timeout=60)
    begin["step"] = 6
    rest = server.workers.BeginCheckpoint(
        pb.CheckpointBegin(worker_id="counted-1", counts_ranks=True, **begin), timeout=60
    )
    assert (list(rest.ranks), rest.num_ranks) == ([1, 2], 0)  # not all from 0 on


def test_a_checkpoint_of_two_ranks_over_the_wire(server: CoordinatorProcess) -> None:
    join(server, "save-1", "save-2", task_id="save")
    begun = [
        server.workers.BeginCheckpoint(pb.CheckpointBegin(worker_id=name, step=5, storage_path="p"), timeout=60)
        for name in ("save-1", "save-2")
    ]
    assert begun[0] == begun[1]
    attempt = begun[0].attempt
    waiting = server.workers.AwaitCheckpoint.future(
        pb.CheckpointAttempt(worker_id="save-2", attempt=attempt), timeout=60
    )
    for rank, name in enumerate(("save-1", "save-2")):
        vote = pb.CheckpointVote(worker_id=name, attempt=attempt, rank=rank, manifest_hash="h", size_bytes=3)
        server.workers.VoteCheckpoint(vote, timeout=60)
    turn = server.workers.AwaitCheckpoint(pb.CheckpointAttempt(worker_id="save-1", attempt=attempt), timeout=60)
    assert (turn.verdict, turn.committer) == (pb.CheckpointDecision.PREPARED, 0)
    server.workers.CommitCheckpoint(pb.CheckpointInfo(worker_id="save-1", attempt=attempt), timeout=60)
    assert waiting.result().verdict == pb.CheckpointDecision.COMMITTED


# --- following


def test_followers_resume_by_number(server: CoordinatorProcess) -> None:
    updates = server.control.WatchState(ct.WatchRequest(), timeout=60)
    snapshot = next(updates).snapshot
    cluster_id = json.loads(snapshot.records_json)["cluster_id"]
    join(server, "follow-1", task_id="follow")
    seen = _events(updates, "WorkerJoined")
    updates.cancel()
    assert seen[0].seq == snapshot.seq + 1
    join(server, "follow-2", "follow-3", task_id="follow")
    request = ct.WatchRequest(from_seq=seen[-1].seq, cluster_id=cluster_id)
    again = server.control.WatchState(request, timeout=60)
    resumed = _events(again, "WorkerJoined")
    assert [event.seq for event in resumed] == [seen[-1].seq + 1, seen[-1].seq + 2]
    again.cancel()
    stranger = server.control.WatchState(ct.WatchRequest(from_seq=3, cluster_id="another"), timeout=60)
    assert next(stranger).HasField("snapshot")
    stranger.cancel()


def _events(updates: Iterator[ct.StateUpdate], kind: str) -> list[ct.Event]:
    """The events up to the end of the batch that holds the first of this kind."""
    found: list[ct.Event] = []
    for update in updates:
        found.extend(update.events.events)
        if any(event.kind == kind for event in found):
            return found
    raise AssertionError("the stream ended")


def test_a_snapshot_taken_under_load_and_the_events_after_it_fit_together(server: CoordinatorProcess) -> None:
    ending = threading.Event()

    def load() -> None:
        number = 0
        while not ending.is_set():
            join(server, f"load-{number % 50}", task_id="load")
            number += 1

    loader = threading.Thread(target=load)
    loader.start()
    try:
        for _ in range(5):
            updates = server.control.WatchState(ct.WatchRequest(), timeout=60)
            snapshot = next(updates).snapshot
            known = {item["worker_id"]: item for item in json.loads(snapshot.records_json)["workers"]}
            first = _events(updates, "WorkerJoined")
            updates.cancel()
            assert first[0].seq == snapshot.seq + 1
            joined = [json.loads(event.body_json) for event in first if event.kind == "WorkerJoined"]
            for event in joined:
                before = known.get(event["worker_id"])
                assert before is None or before["incarnation"] != event["incarnation"], "it was in the snapshot already"
    finally:
        ending.set()
        loader.join()


# --- ends


def test_sigterm_ends_it_in_order_and_the_next_start_knows_everything(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path / "data") as server:
        join(server, "a", task_id="t")
        assert server.stop() == 0
        assert not (server.folder / "coordinator.json").exists()
        assert "Traceback" not in server.log()
        with closing(sqlite3.connect(server.folder / "coordinator" / "journal.db")) as journal:
            assert journal.execute("SELECT count(*) FROM snapshots").fetchone() == (1,)
        server.start()
        worker = server.worker("a")
        assert worker is not None
        assert worker["state"] == "ready"


def test_a_full_disk_stops_it_and_nothing_it_promised_is_lost(tmp_path: Path) -> None:
    """The kernel refuses what is written behind the first megabyte of a file, as a full disk would."""
    with CoordinatorProcess(tmp_path / "data") as server:
        join(server, *(f"w{number}" for number in range(20)), task_id="t")
        assert server.process is not None
        psutil.Process(server.pid).rlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        acknowledged, status = _join_until_refused(server, 20)
        assert status is grpc.StatusCode.UNAVAILABLE
        assert server.process.wait(30) != 0
        assert "the journal has failed, stopping" in server.log()
        server.start()
        known = {worker["worker_id"] for worker in server.state()["workers"]}
        assert known >= {f"w{number}" for number in range(acknowledged)}


def _join_until_refused(server: CoordinatorProcess, number: int) -> tuple[int, grpc.StatusCode]:
    """How many had joined when one was refused, and how."""
    while True:
        try:
            join(server, f"w{number}", task_id="t")
        except grpc.RpcError as error:
            return number, error.code()
        number += 1


def test_an_ipv6_address_is_written_so_that_it_can_be_dialled(tmp_path: Path) -> None:
    if not os.path.exists("/proc/net/if_inet6"):  # noqa: PTH110 - a kernel file
        pytest.skip("this machine has no IPv6")
    with CoordinatorProcess(tmp_path / "data", "--host", "::1") as server:
        assert server.address.startswith("[::1]:")
        assert server.state()["term"] == 1
