"""The specification's own Python calls against a real coordinator: join, beat, shards, barrier, recovery, registry."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata import DatasetRegistry, TrainingOrchestrator
from strata.errors import Refused, UnknownDataset
from tests.support.nodes import Nodes, wait_for, write_dataset


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("orchestrator")) as nodes:
        nodes.start("coordinator")
        yield nodes


def test_two_workers_share_a_dataset_and_meet(nodes: Nodes, tmp_path: Path) -> None:
    registry = DatasetRegistry(nodes.address)
    spec = registry.register("ds-001", path=write_dataset(tmp_path / "data"), format="parquet", shuffle=True, seed=42)
    assert (spec.total_samples, registry.get("ds-001").seed) == (4_000, 42)
    assert registry.register("ds-001", path=spec.path, format="parquet", shuffle=True, seed=42) == spec
    with TrainingOrchestrator(f"http://{nodes.address}") as one, TrainingOrchestrator(nodes.address) as two:
        first = one.register_worker("worker-0", "localhost", 50052, gpu_count=8)
        second = asyncio.run(two.register_worker_async("worker-1", "localhost", 50053))
        assert (first.worker_id, first.rank, second.rank, second.world_size) == ("worker-0", 0, 1, 2)
        assert first.heartbeat_interval_ms > 0
        assert one.heartbeat(current_step=1)
        shards = [shard.shard_id for worker in (one, two) for shard in worker.get_shard("ds-001", epoch=0)]
        assert sorted(shards) == list(range(spec.num_shards))
        meeting = threading.Thread(target=two.barrier, args=("epoch-0", 100))
        meeting.start()
        assert one.barrier("epoch-0", step=100).participants == 2
        meeting.join()
        assert not one.recover().has_checkpoint
        with pytest.raises(UnknownDataset):
            one.get_shard("nowhere")
    registry.close()
    wait_for(lambda: {item.state for item in nodes.records().workers.values()} == {"left"}, what="both have left")


def test_calls_before_registering_say_so(nodes: Nodes) -> None:
    with TrainingOrchestrator(nodes.address) as worker, pytest.raises(Refused, match="no worker is registered"):
        worker.barrier("b")
