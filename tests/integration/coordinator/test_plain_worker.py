"""A worker of the original proto, in a process of its own, against a real coordinator: its life, death and return."""

from collections.abc import Callable

import pytest

from tests.support.coordinator_process import CoordinatorProcess
from tests.support.plain_client import PlainClient, PlainFailure
from tests.support.waiting import eventually

Plain = Callable[[], PlainClient]


def test_it_does_all_that_the_original_could(plain: Plain) -> None:
    a, b = plain(), plain()
    first = a.call("RegisterWorker", worker_id="a", hostname="h", port=1, gpu_count=8, metadata={"k": "v"})
    a.start("beat_for_ever", worker_id="a", every_s=0.1)  # before anything else is done: its lease is a second
    assert (first["assigned_id"], first["rank"], first["world_size"]) == ("a", 0, 1)
    assert 0 < int(first["heartbeat_interval_ms"]) < 1_000
    assert b.call("RegisterWorker", worker_id="b")["rank"] == 1
    b.start("stream_for_ever", worker_id="b", every_s=0.1)

    ack = a.call("RegisterDataset", dataset_id="d", path="x/*.csv", total_samples=100, shard_size=10, shuffle=True)
    assert (ack["success"], ack["total_shards"]) == (True, "10")
    shard = a.call("GetDataShard", worker_id="a", dataset_id="d", epoch=2)
    assert (shard["total_shards"], shard["epoch"], shard["file_paths"]) == ("10", "2", ["x/*.csv"])
    assert int(shard["end_index"]) - int(shard["start_index"]) == 10
    assert b.call("GetDataShard", worker_id="b", dataset_id="d", epoch=2)["shard_id"] != shard["shard_id"]

    waiting = a.start("WaitBarrier", worker_id="a", barrier_id="epoch-0", step=100)
    assert b.call("Heartbeat", worker_id="b")["acknowledged"]
    assert not waiting.done
    told = [b.call("WaitBarrier", worker_id="b", barrier_id="epoch-0", step=100), waiting.result()]
    assert sorted(answer.pop("arrival_order") for answer in told) == ["1", "2"]  # whose call is first, nobody knows
    assert told == [{"released": True, "barrier_id": "epoch-0", "participants": "2"}] * 2

    saved = {"checkpoint_id": "k", "step": 50, "epoch": 1, "storage_path": "s3://b/k", "size_bytes": 9}
    assert a.call("NotifyCheckpoint", worker_id="a", type="MODEL_ONLY", **saved)["global_step"] == "50"
    back = b.call("GetLatestCheckpoint", worker_id="b", job_id="whatever")
    assert (back["has_checkpoint"], back["resume_step"], back["resume_epoch"]) == (True, "50", "1")
    assert back["latest_checkpoint"]["checkpoint_id"] == "k"
    assert len(back["shard_assignments"]) == 5
    assert b.call("DeregisterWorker", worker_id="b")["world_size"] == 1


def test_killed_it_is_lost_named_and_welcome_back(coordinator: CoordinatorProcess, plain: Plain) -> None:
    workers = {name: plain() for name in ("a", "b", "c")}
    for name, worker in workers.items():
        worker.call("RegisterWorker", worker_id=name)
        worker.start("beat_for_ever", worker_id=name, every_s=0.1)
    workers["a"].call("RegisterDataset", dataset_id="d", total_samples=90, shard_size=1)
    waiting = [workers[name].start("WaitBarrier", worker_id=name, barrier_id="b", step=1) for name in "ac"]

    workers["b"].kill()
    for call in waiting:
        with pytest.raises(PlainFailure, match="barrier") as caught:
            call.result()
        assert caught.value.code == "ABORTED"
        assert "'b' is broken: b (rank 1): no heartbeat for" in caught.value.message
    lost = coordinator.worker("b")
    assert lost is not None
    assert lost["state"] == "lost"

    shards = [workers[name].call("GetLatestCheckpoint", worker_id=name)["shard_assignments"] for name in "ac"]
    assert [len(part) for part in shards] == [45, 45]
    assert len({shard["shard_id"] for part in shards for shard in part}) == 90

    back = plain()
    config = back.call("RegisterWorker", worker_id="b")
    assert (config["rank"], config["world_size"]) == (1, 3)


def test_paused_past_its_lease_it_is_fenced_on_every_mutating_call(
    coordinator: CoordinatorProcess, plain: Plain
) -> None:
    zombie, other = plain(), plain()
    zombie.call("RegisterWorker", worker_id="z")
    other.call("RegisterWorker", worker_id="o")
    other.start("beat_for_ever", worker_id="o", every_s=0.1)
    other.call("RegisterDataset", dataset_id="d", total_samples=10, shard_size=1)
    zombie.pause()
    eventually("the loss", lambda: (coordinator.worker("z") or {}).get("state") == "lost")
    zombie.resume()
    calls: dict[str, dict[str, object]] = {
        "Heartbeat": {},
        "GetDataShard": {"dataset_id": "d"},
        "WaitBarrier": {"barrier_id": "b"},
        "NotifyCheckpoint": {"checkpoint_id": "k", "step": 1},
        "GetLatestCheckpoint": {},
        "DeregisterWorker": {},
    }
    before = coordinator.state()
    for name, request in calls.items():
        with pytest.raises(PlainFailure, match=r"fenced: worker z was declared lost .* ago: no heartbeat") as caught:
            zombie.call(name, worker_id="z", **request)
        assert caught.value.code == "FAILED_PRECONDITION", name
    assert coordinator.state() == before
    assert zombie.call("RegisterWorker", worker_id="z")["rank"] == 0


def test_a_broken_stream_makes_a_suspect_and_the_lease_decides(coordinator: CoordinatorProcess, plain: Plain) -> None:
    worker = plain()
    worker.call("RegisterWorker", worker_id="s")
    worker.start("stream_for_ever", worker_id="s", every_s=0.05)
    worker.kill()
    eventually("the loss", lambda: (coordinator.worker("s") or {}).get("state") == "lost")
