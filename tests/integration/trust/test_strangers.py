"""What was found open to every user of the machine, tried again by one: a process of another uid."""

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from strata.client.channel import Channel
from strata.client.tasks import TasksClient
from strata.cluster.members import Worker
from strata.errors import Fenced
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import telemetry_pb2 as tm
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.trust.proofs import Proofs
from strata.types.tasks import TaskStatus, worker_id_of
from tests.support.cluster import Cluster, strata
from tests.support.nodes import Nodes, wait_for
from tests.support.stranger import Stranger, needs_root

_KEY = "sk-very-private-0815"
_RANK = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(os.environ["API_KEY"] + " " + os.environ.get("STRATA_TOKEN", "no token"))
time.sleep(600)
"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("strangers")) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        yield nodes


@pytest.fixture(scope="module")
def task(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A task with a key in its env, and the file in which its rank says what it sees."""
    seen = tmp_path_factory.mktemp("rank") / "seen"
    entrypoint = ("python", "-c", _RANK, str(seen))
    task_id = nodes.submit(name="keyed", worker_count=1, entrypoint=entrypoint, env={"API_KEY": _KEY})
    wait_for(lambda: nodes.task(task_id).status is TaskStatus.RUNNING and seen.exists() and seen.read_text(), 60)
    return task_id, seen


@needs_root
def test_a_stranger_runs_nothing_and_reads_no_file(nodes: Nodes, tmp_path: Path) -> None:
    spoiled = tmp_path / "strata"
    spoiled.mkdir()
    (spoiled / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    spec = ct.TaskSpec(name="theirs", type="training", worker_count=1, dataset_id="d", working_dir=str(tmp_path))
    with Stranger() as stranger:
        for request in (spec, ct.TaskSpec(name="theirs", entrypoint=["true"], worker_count=1)):
            answer = stranger.grpc(nodes.address, "/strata.control.Control/SubmitTask", request.SerializeToString())
            assert answer == "UNAUTHENTICATED"
        dataset = {"dataset_id": "shadow", "path": "/etc/shadow", "format": "csv"}
        assert stranger.rest(nodes.http, "POST", "/api/datasets", dataset) == 401
        info = pb.DatasetInfo(dataset_id="shadow", path="/etc/shadow", format="csv", total_samples=1, shard_size=1)
        register = "/coordinator.Coordinator/RegisterDataset"
        assert stranger.grpc(nodes.address, register, info.SerializeToString()) == "UNAUTHENTICATED"
        assert stranger.rest(nodes.http, "GET", "/api/datasets/shadow/preview") == 401
        for path in ("/api/tasks/x/stop", "/api/checkpoints/x/unpin"):
            assert stranger.rest(nodes.http, "POST", path, {}) == 401
        assert stranger.rest(nodes.http, "DELETE", "/api/runs/x") == 401
    assert nodes.get("/api/datasets") == []
    assert not (tmp_path / "ran").exists()


@needs_root
def test_a_stranger_that_is_gone_at_once_is_not_taken_for_root(nodes: Nodes) -> None:
    nodes.post("/api/runs/kept/points", {"points": [{"metric": "loss", "step": 1, "value": 1}]})
    with Stranger() as stranger:
        for _ in range(50):
            stranger.leave_behind(nodes.http, "DELETE", "/api/runs/kept")
        assert stranger.rest(nodes.http, "GET", "/health") == 200  # everything before it has been handled
    assert "kept" in [run["run_id"] for run in nodes.get("/runs")]


def test_the_values_of_env_reach_the_rank_and_nobody_else(nodes: Nodes, task: tuple[str, Path]) -> None:
    task_id, seen = task
    assert seen.read_text() == f"{_KEY} no token"
    with Channel(nodes.address) as channel:
        listed = str(channel.stub(ControlStub).ListTasks(ct.ListRequest()))
        found = str(channel.stub(ControlStub).GetTask(ct.TaskRef(task_id=task_id)))
        watched = str(next(channel.stub(ControlStub).WatchState(ct.WatchRequest())))
        tasks = TasksClient(channel).list()
    dumped = strata("state", "dump", "--data-dir", str(nodes.data_dir))
    assert dumped.returncode == 0, dumped.stderr
    pages = [json.dumps(nodes.get(path)) for path in ("/api/tasks", f"/api/tasks/{task_id}", "/api/dashboard")]
    for shown in (listed, found, watched, dumped.stdout, *pages):
        assert _KEY not in shown
    assert "API_KEY" in found
    assert task_id in [task.task_id for task in tasks]
    with sqlite3.connect(nodes.data_dir / "coordinator" / "journal.db") as journal:
        bodies = [body for (body,) in journal.execute("SELECT body FROM records")]
    journal.close()
    assert not any(_KEY.encode() in body for body in bodies)


def test_a_killed_coordinator_still_gives_the_env_to_the_next_attempt(nodes: Nodes, task: tuple[str, Path]) -> None:
    task_id, seen = task
    seen.unlink()
    nodes.kill("coordinator")
    nodes.start("coordinator")
    wait_for(lambda: nodes.rank_pids(task_id), 60)
    (pid,) = nodes.rank_pids(task_id).values()
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: seen.exists() and seen.read_text(), 90) == f"{_KEY} no token"


def test_a_live_rank_is_not_thrown_out_by_its_name(nodes: Nodes, task: tuple[str, Path]) -> None:
    """By the owner's own processes, too: a plain worker that took this id by mistake."""
    task_id, _ = task
    wait_for(lambda: nodes.task(task_id).status is TaskStatus.RUNNING and nodes.rank_pids(task_id), 60)
    name = worker_id_of(task_id, 0)
    wait_for(lambda: _worker(nodes, name).state == "ready", 60)
    before = _worker(nodes, name)
    with Channel(nodes.address, patience_s=0.0) as channel:
        stub = channel.stub(CoordinatorStub)
        for incarnation in ("", f"{task_id}.99.0"):
            info = pb.WorkerInfo(worker_id=name, task_id=task_id, incarnation=incarnation)
            with pytest.raises(Fenced):
                channel.call(stub.RegisterWorker, info)
        notice = pb.CheckpointInfo(worker_id=name, checkpoint_id="x", step=10**9, storage_path="/theirs")
        with pytest.raises(Fenced):
            channel.call(stub.NotifyCheckpoint, notice)
    assert _worker(nodes, name).incarnation == before.incarnation
    assert nodes.get("/api/checkpoints") == []


@needs_root
def test_a_rank_elsewhere_reports_its_own_and_its_secret_ends_with_the_attempt(
    nodes: Nodes, task: tuple[str, Path]
) -> None:
    task_id, _ = task
    proofs = Proofs((nodes.data_dir / "token").read_text().strip())
    attempt = nodes.task(task_id).attempt
    now, stale = proofs.mint_secret(task_id, attempt), proofs.mint_secret(task_id, attempt + 7)
    beat = pb.HeartbeatRequest(worker_id=worker_id_of(task_id, 0), incarnation=f"{task_id}.{attempt}.0")
    path, report = "/coordinator.Coordinator/Heartbeat", "/strata.telemetry.Telemetry/ReportOnce"

    def batch(run_id: str) -> bytes:
        points = tm.Points(series=[0], step=[1], event_time_ms=[1_700_000_000_000], value=[1.0])
        series = [tm.Series(index=0, run_id=run_id, metric="loss", device=65535)]
        return tm.Batch(batch_id=f"b-{run_id}", series=series, points=points).SerializeToString()

    with Stranger() as rank:
        assert rank.grpc(nodes.address, path, beat.SerializeToString(), strata_rank_secret=now) == "OK"
        old = rank.grpc(nodes.address, path, beat.SerializeToString(), strata_rank_secret=stale)
        assert old == "FAILED_PRECONDITION"
        assert rank.grpc(nodes.telemetry, report, batch(task_id), strata_rank_secret=now) == "OK"
        assert rank.grpc(nodes.telemetry, report, batch("kept"), strata_rank_secret=now) == "PERMISSION_DENIED"
        assert rank.grpc(nodes.telemetry, report, batch(task_id)) == "UNAUTHENTICATED"


def test_the_data_folder_is_closed_to_others(nodes: Nodes) -> None:
    assert nodes.data_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_on_a_public_address_strangers_get_health_and_a_browser_signs_in(tmp_path: Path) -> None:
    environment = {"STRATA_INSECURE": "1"}
    with Cluster(tmp_path / "data", "--host", "0.0.0.0", "--no-agent", environment=environment) as cluster:
        port = cluster.endpoints["http"].rpartition(":")[2]
        there = f"http://127.0.0.1:{port}"
        elsewhere = {"Host": f"head.example:{port}"}  # as a browser on another host calls it: no kernel knows that one
        token = (cluster.folder / "token").read_text().strip()
        with httpx.Client(base_url=there, headers=elsewhere, timeout=60) as browser:
            assert browser.get("/health").status_code == 200
            assert browser.get("/").status_code == 200
            assert browser.get(f"/api/tasks?token={token}").status_code == 401
            assert browser.get("/api/tasks", params={"token": token}).status_code == 401
            assert browser.post("/api/session", json={"token": "wrong"}).status_code == 401
            signed = browser.post("/api/session", json={"token": token})
            assert signed.status_code == 200
            assert token not in signed.headers["set-cookie"]
            cookie = signed.headers["set-cookie"].partition(";")[0]
            assert browser.get("/api/tasks", headers={"Cookie": cookie}).status_code == 200
        listed = strata("tasks", "--data-dir", str(cluster.folder), "--json", STRATA_INSECURE="1")
        assert listed.returncode == 0, listed.stderr


def _worker(nodes: Nodes, worker_id: str) -> Worker:
    return nodes.records().workers[worker_id]
