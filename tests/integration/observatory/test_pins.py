"""Pins set from the dashboard are the ones that retention honours: real coordinator, observatory and stores."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

from strata.checkpoint import CheckpointManager
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until
from tests.integration.observatory.test_feed import CoordinatorProcess, coordinator
from tests.support.local_http import LOCAL
from tests.support.seaweed import ACCESS_KEY, SECRET_KEY, seaweed

__all__ = ["coordinator"]  # a fixture that is used by name

_BUCKET = "pins"


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.slow)])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where checkpoints are, and the environment that finds it."""
    if request.param == "local":
        return str(tmp_path / "ckpt")
    server = seaweed()
    server.make_bucket(_BUCKET)
    environment = {
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": server.endpoint_url,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{_BUCKET}/{secrets.token_hex(4)}"


@pytest.fixture
def observatory(tmp_path: Path, coordinator: CoordinatorProcess, root: str) -> Iterator[ObservatoryProcess]:
    process = ObservatoryProcess(tmp_path / "data", coordinator=f"127.0.0.1:{coordinator.port}").start()
    yield process
    process.dispose()


def announce(coordinator: CoordinatorProcess, steps: dict[int, str]) -> None:
    """As a worker does: the step, and an address that may be the store's or the checkpoint's own."""
    with grpc.insecure_channel(f"127.0.0.1:{coordinator.port}") as channel:
        stub = CoordinatorStub(channel)
        stub.RegisterWorker(pb.WorkerInfo(worker_id="w1", hostname="h1", port=7), timeout=60)
        for step, path in steps.items():
            info = pb.CheckpointInfo(
                worker_id="w1", checkpoint_id=f"c{step}", step=step, storage_path=path, size_bytes=5
            )
            stub.NotifyCheckpoint(info, timeout=60)


def pin(process: ObservatoryProcess, name: str, verb: str = "pin", body: Any = None) -> httpx.Response:
    return LOCAL.post(f"{process.http}/api/checkpoints/{name}/{verb}", json=body)


def pins(process: ObservatoryProcess) -> dict[str, bool | None]:
    return {one["id"]: one["pinned"] for one in process.get("/api/checkpoints")}


@pytest.mark.slow
def test_a_pin_is_durable_shown_and_honoured(
    coordinator: CoordinatorProcess, observatory: ObservatoryProcess, root: str
) -> None:
    """Takes about 6 s, more where the S3 server has to start first: the observatory is started twice."""
    with CheckpointManager(root, keep_count=2) as manager:
        for step in (1, 2):
            manager.save({"w": np.ones(4)}, step=step)
        announce(coordinator, {1: root, 2: f"{root}/step-{2:012d}", 9: "elsewhere", 10**12: root})
        wait_until(lambda: pins(observatory).get("c2") is False, "the pins of the store")
        answer = pin(observatory, "c1", body={"pinned": True})
        assert answer.json() == {"success": True, "id": "c1", "pinned": True}
        assert pins(observatory) == {"c1": True, "c2": False, "c9": None, f"c{10**12}": False}
        assert [info.step for info in manager.list() if info.pinned] == [1]

        manager.save({"w": np.ones(4)}, step=3)
        manager.save({"w": np.ones(4)}, step=4)
        manager.wait()
        assert sorted(info.step for info in manager.list()) == [1, 3, 4], "retention spares the pinned one only"

        observatory.stop()
        observatory.start()
        wait_until(lambda: pins(observatory).get("c1") is True, "the pin, over a restart")
        if not root.startswith("s3://"):  # SeaweedFS goes on listing folders that are empty
            (deleted,) = [one for one in observatory.get("/api/checkpoints") if one["id"] == "c2"]
            assert (deleted["status"], deleted["reason"]) == ("removed", "no longer in its store"), "nobody reported it"
        assert pin(observatory, "c1", "unpin").json()["pinned"] is False
        assert pin(observatory, "c1", body={"pinned": False}).status_code == 200, "unpinning twice is harmless"
        assert pins(observatory)["c1"] is False
        manager.save({"w": np.ones(4)}, step=5)
        manager.wait()
        assert sorted(info.step for info in manager.list()) == [4, 5]

    gone = pin(observatory, "c1")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "checkpoint_not_found")
    assert pin(observatory, "c9").status_code == 404
    assert pin(observatory, "none").status_code == 404
    assert pin(observatory, "c2", body={"pinned": True, "for": "ever"}).status_code == 422
    foreign = LOCAL.post(f"{observatory.http}/api/checkpoints/c2/pin", headers={"origin": "http://evil.example"})
    assert foreign.status_code == 403
