"""docs/troubleshooting.md says what the system says: the symptoms of its table are provoked, and the words compared.
Two are not: *Disconnected* (a browser's) and the network file system (compared with the source)."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import pytest

from strata import CheckpointManager, DatasetRegistry
from strata.errors import CheckpointError, StorageAccessDenied, StorageError, StorageNotFound, StrataError
from strata.protocol.generated.coordinator_pb2 import BarrierRequest, WorkerInfo
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store
from tests.support.cluster import Cluster
from tests.support.local_http import LOCAL
from tests.support.plain_client import PlainClient, PlainFailure
from tests.support.ports import free_ports
from tests.support.seaweed import seaweed
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| symptom")
]
Plain = Callable[[], PlainClient]


def row(start: str) -> list[str]:
    return next(row for row in ROWS if row[0].lstrip("`").startswith(start))


def check(start: str, said: str, hint: str | None = None) -> None:
    """What was said fits the page's symptom; the hint's first words are the page's advice."""
    symptom, _, advice = row(start)
    quoted = re.findall(r"`([^`]+)`", symptom)[0]
    pattern = ".*".join(re.escape(part) for part in quoted.split("…"))
    assert re.search(pattern, said, re.DOTALL), f"the page says {quoted!r}, Strata says {said!r}"
    if hint is not None:
        assert advice.rstrip(".")[:40] in hint or hint.rstrip(".")[:40] in advice, f"{advice!r} is not {hint!r}"


def _strata(folder: Path, *arguments: str, **environment: str) -> str:
    merged = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "strata", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=merged, cwd=folder, check=False)
    assert done.returncode != 0
    return " ".join((done.stdout + done.stderr).split())


def test_every_symptom_of_the_page_has_its_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    for symptom, _, _ in ROWS:
        if "*Disconnected*" in symptom:
            continue  # the browser's: tests/browser/test_failures.py
        start = symptom.partition("`")[2].partition("`")[0][:14]
        assert f'"{start}' in source, f"no test is about {symptom}"


def test_nobody_there() -> None:
    registry = DatasetRegistry(f"127.0.0.1:{free_ports(1)[0]}", timeout_s=1)
    with pytest.raises(StrataError) as refused:
        registry.get("ds-001")
    check("no coordinator answers", refused.value.message, refused.value.hint)


def test_buckets() -> None:
    seaweed().make_bucket("trouble")
    with pytest.raises(StorageAccessDenied) as denied:
        open_store("s3://trouble/x", seaweed().options(secret_access_key="wrong")).get("k")
    check("access denied ", denied.value.message, denied.value.hint)
    with pytest.raises(StorageNotFound) as missing:
        open_store("s3://no-such-bucket/x", seaweed().options()).get("k")
    check("no bucket for ", missing.value.message)
    for word in ("CHECKPOINT_BUCKET", "AWS_REGION"):
        assert word in missing.value.hint
        assert word in row("no bucket for ")[2]


def test_a_bucket_that_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    away = StorageOptions(
        region="us-east-1",
        access_key_id="k",
        secret_access_key="s",
        endpoint_url=f"http://127.0.0.1:{free_ports(1)[0]}",
        max_retries=2,
    )
    with caplog.at_level("WARNING", logger="strata"), pytest.raises(StorageError) as failed:
        open_store("s3://away/x", away).get("k")
    tries = [record for record in caplog.records if "next try in" in record.getMessage()]
    assert [record.levelname for record in tries] == ["WARNING", "WARNING"]
    check("… s3://… failed", tries[0].getMessage())
    assert "try 1 of 3" in tries[0].getMessage()
    assert "AWS_ENDPOINT_URL" in failed.value.hint


def test_half_a_configuration(tmp_path: Path) -> None:
    said = _strata(tmp_path, "up", STORAGE_BACKEND="s3")
    check("STORAGE_BACKEND is s3", said, said)


def test_a_dataset_that_nobody_registered(cluster: Cluster, plain: Plain) -> None:
    request = {"name": "x", "type": "training", "dataset_id": "nowhere", "worker_count": 1, "config": {}}
    answer = LOCAL.post(f"{cluster.endpoints['http']}/api/tasks", json=request)
    error = answer.json()["error"]
    check("no dataset '…'", error["message"], error["hint"])
    worker = plain()
    worker.call("RegisterWorker", worker_id="asks")
    with pytest.raises(PlainFailure) as refused:
        worker.call("GetDataShard", worker_id="asks", dataset_id="nowhere", epoch=0)
    check("no dataset '…'", refused.value.message)
    worker.call("DeregisterWorker", worker_id="asks")


def test_another_web_site(cluster: Cluster) -> None:
    headers = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = LOCAL.post(f"{cluster.endpoints['http']}/api/tasks", json={}, headers=headers)
    error = answer.json()["error"]
    check("requests from ", error["message"])
    assert "STRATA_ALLOWED_ORIGINS" in error["hint"]
    assert "STRATA_ALLOWED_ORIGINS" in row("requests from ")[2]


def test_a_worker_that_falls_silent(cluster: Cluster, plain: Plain) -> None:
    """It is lost after HEARTBEAT_TIMEOUT (5 s here); its peer hears why, its shards move, and itself is fenced."""
    silent, other = plain(), plain()
    other.call("RegisterWorker", worker_id="other")
    other.start("beat_for_ever", worker_id="other", every_s=0.2)
    silent.call("RegisterWorker", worker_id="silent")
    other.call("RegisterDataset", dataset_id="trouble", path="x/*.csv", total_samples=100, shard_size=10)

    def own() -> int:
        assigned = other.call("GetLatestCheckpoint", worker_id="other")["shard_assignments"]
        return sum(shard["dataset_id"] == "trouble" for shard in assigned)

    before = own()
    waiting = other.start("WaitBarrier", worker_id="other", barrier_id="stalls", step=1)

    def stalled() -> dict[str, object] | None:
        found = [one for one in cluster.get("/api/barriers") if one["name"] == "stalls" and one["status"] == "waiting"]
        return found[0] if found else None

    told = eventually("the waiting barrier", stalled, within_s=20)
    assert told["missing"] == ["silent"]
    with pytest.raises(PlainFailure) as broken:
        waiting.result(within_s=60)
    check("barrier '…' is", broken.value.message)
    with pytest.raises(PlainFailure) as fenced:
        silent.call("Heartbeat", worker_id="silent")
    check("fenced: …", fenced.value.message)
    lost = eventually("the line", lambda: cluster.get("/api/logs?worker_id=silent&level=error"), within_s=30)
    check("worker … lost:", lost[0]["message"])
    assert before < 10
    eventually("its shards are with the other", lambda: own() == 10)
    other.call("DeregisterWorker", worker_id="other")


def test_a_member_that_does_not_come(cluster: Cluster) -> None:
    with grpc.insecure_channel(cluster.endpoints["grpc"]) as channel:
        stub = CoordinatorStub(channel)
        for name in ("comes", "lingers"):
            stub.RegisterWorker(WorkerInfo(worker_id=name))
        with pytest.raises(grpc.RpcError) as expired:
            stub.WaitBarrier(BarrierRequest(worker_id="comes", barrier_id="late", step=1, timeout_ms=300))
        check("barrier '…' expired", str(expired.value.details()))
        for name in ("comes", "lingers"):
            stub.DeregisterWorker(WorkerInfo(worker_id=name))


def test_a_folder_and_a_port_that_are_taken(cluster: Cluster, tmp_path: Path) -> None:
    said = _strata(tmp_path, "coordinator", "--data-dir", str(cluster.folder), "--grpc-port", "0")
    check("… is in use by", said)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        said = _strata(tmp_path, "coordinator", "--data-dir", str(tmp_path / "d"), "--grpc-port", port)
        check("port … is taken", said)
    assert "--grpc-port" in said


def test_a_damaged_checkpoint(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path / "ck") as manager:
        for step in (1, 2):
            manager.save({"w": np.random.default_rng(step).random(100_000)}, step=step)
    data = max((tmp_path / "ck").rglob("*.safetensors"), key=str)
    raw = bytearray(data.read_bytes())
    raw[-1_000] ^= 0xFF
    data.write_bytes(bytes(raw))
    manager = CheckpointManager(tmp_path / "ck")
    with pytest.raises(CheckpointError) as damaged:
        manager.load(2)
    check("step …, rank …", damaged.value.message)
    assert np.array_equal(manager.load()["w"], np.random.default_rng(1).random(100_000)), "the one before is used"


def test_a_network_file_system_is_refused_in_these_words() -> None:
    """There is none to mount in a test, so the page is held against the sentence in the source."""
    source = (ROOT / "strata" / "coordinator" / "journal" / "sqlite.py").read_text()
    found = re.search(r'f"(the data folder [^"]+)"', source)
    assert found is not None
    check("the data folder", re.sub(r"\{\w+\}", "/x", found[1]))


def test_the_figures_that_the_page_tells_to_look_at_are_there(cluster: Cluster) -> None:
    told = cluster.get("/api/metrics")
    for name in re.findall(r"`(barrier_\w+|checkpoint_throughput)`", PAGE):
        assert name in told
