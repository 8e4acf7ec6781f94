"""`strata checkpoints` of a running cluster. About 6 s: a cluster starts."""

import json
from pathlib import Path

import pytest

from strata.client.channel import Channel
from strata.client.workers import WorkersClient
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.workers import WorkerSpec
from strata.worker.commit import CoordinatorCommit
from tests.support.cluster import Cluster, strata
from tests.support.waiting import eventually


@pytest.mark.slow
def test_the_list_leaves_out_what_was_removed_unless_asked_for(tmp_path: Path) -> None:
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        with Channel(cluster.endpoints["grpc"]) as channel:
            member = WorkersClient(channel).register(WorkerSpec(worker_id="w"))
            for step in (1, 2):
                saved = pb.CheckpointInfo(
                    worker_id="w",
                    checkpoint_id=f"c{step}",
                    step=step,
                    storage_path=f"/elsewhere/step-{step:012d}",
                    size_bytes=5,
                )
                channel.call(channel.stub(CoordinatorStub).NotifyCheckpoint, saved)
            CoordinatorCommit(channel, lambda: member, "/elsewhere").removed(1, "by hand")
        eventually("the removal", lambda: "removed" in {one["status"] for one in cluster.get("/api/checkpoints")})

        def listed(*options: str) -> list[str]:
            done = strata("checkpoints", "ls", "--json", "--data-dir", str(cluster.folder), *options)
            assert done.returncode == 0, done.stderr
            return [one["id"] for one in json.loads(done.stdout)]

        assert listed() == ["c2"]
        assert sorted(listed("--all")) == ["c1", "c2"]
