"""Shell blocks of README and docs, run as they stand against a real Strata, and what their page promises looked up."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from strata.protocol.generated.coordinator_pb2 import WorkerInfo
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from tests.support.cluster import Cluster
from tests.support.nodes import write_dataset
from tests.support.pages import block, environment, here, run
from tests.support.ports import free_ports
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

# Saves at every step until it is told to stop; started again it says where it goes on, and is done.
_PATIENT = """
import time
import numpy, strata
run = strata.init()
with run.checkpoints() as checkpoints:
    found = checkpoints.recover()
    print(f"starts from {found.info.step if found else 0}", flush=True)
    step = 0
    while not found and not run.should_stop():
        step += 1
        checkpoints.save({"x": numpy.full(3, step)}, step=step)
        time.sleep(0.05)
run.finish()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Started in a folder that has data, as a user's has."""
    folder = tmp_path_factory.mktemp("shell")
    write_dataset(folder / "data")
    with Cluster(folder / ".strata", "--slots", "4", cwd=folder) as running:
        yield running.wait_for_store()


@contextmanager
def following(code: str, folder: Path, data_dir: Path, **variables: str) -> Iterator[list[str]]:
    """A block that runs until Ctrl-C; the lines that it has printed so far."""
    lines: list[str] = []
    with subprocess.Popen(
        ["bash", "-c", f"exec env {code}"],
        cwd=folder,
        env={**environment(data_dir), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            yield lines
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(60)
            reader.join(10)


def _status(cluster: Cluster, task: str) -> str:
    return str(cluster.get(f"/api/tasks/{task}")["status"])


@pytest.mark.parametrize(
    ("page", "heading"), [("README.md", "Your first metric"), ("docs/quickstart.md", "Log from any script")]
)
def test_the_first_metric(cluster: Cluster, tmp_path: Path, page: str, heading: str) -> None:
    """Five lines: the points are on the page, and the script prints its address."""
    code = block(page, heading)
    assert len([line for line in code.splitlines() if line]) == 5
    (tmp_path / "first.py").write_text(code)
    printed = run("python first.py 2>&1", tmp_path, cluster.folder)
    page_of = rf"^strata: run \S+: {re.escape(cluster.endpoints['http'])}/ui/runs/(\S+)$"
    (run_id,) = re.findall(page_of, printed, re.MULTILINE)
    eventually("its points", lambda: len(_losses(cluster, run_id)) == 100, within_s=60)


def _losses(cluster: Cluster, run_id: str) -> list[float]:
    return [value for one in cluster.get(f"/metrics/{run_id}?metric=loss")["series"] for value in one["values"]]


def test_submit_over_http(cluster: Cluster, tmp_path: Path) -> None:
    """The dataset is known, and the built-in type trains on it with four ranks and the config of the page."""
    code = here(block("docs/quickstart.md", "Submit over HTTP"), cluster)
    printed = run(code, tmp_path, cluster.folder)
    dataset, task = (json.loads(part) for part in re.findall(r"\{.*?\}(?=\{|\s*$)", printed, re.DOTALL))
    assert dataset["id"] == "ds-001"
    task_id = task["task_id"]
    eventually("its end", lambda: _status(cluster, task_id) == "completed", within_s=180)
    told = cluster.get(f"/api/tasks/{task_id}")
    assert (told["name"], told["worker_count"]) == ("imagenet-resnet50", 4)
    assert told["config"] == {"learning_rate": 0.001, "batch_size": 32}
    assert cluster.get(f"/metrics/{task_id}?metric=loss")["series"]


def test_train_on_several_workers(cluster: Cluster, tmp_path: Path) -> None:
    before = {one["id"] for one in cluster.get("/api/tasks")}
    run(block("docs/quickstart.md", "Train on several workers"), tmp_path, cluster.folder, within_s=240)
    (task,) = [one for one in cluster.get("/api/tasks") if one["id"] not in before]
    assert (task["status"], task["worker_count"]) == ("completed", 4)


def test_who_is_alive(cluster: Cluster, tmp_path: Path) -> None:
    """Status, step, age of the last heartbeat and shards of each worker; its log as it comes."""
    code = here(block("docs/troubleshooting.md", "Who is alive"), cluster)
    asks, follows = code.strip().rsplit("\n", 1)
    with grpc.insecure_channel(cluster.endpoints["grpc"]) as channel:
        stub = CoordinatorStub(channel)
        with following(follows, tmp_path, cluster.folder) as lines:
            stub.RegisterWorker(WorkerInfo(worker_id="worker-3"))
            eventually("its line", lambda: any("worker-3" in line for line in lines), within_s=60)
        eventually("the worker", lambda: [w for w in cluster.get("/api/workers") if w["id"] == "worker-3"])
        printed = run(asks, tmp_path, cluster.folder)
        assert "worker-3" in printed
        for column in ("status", "step", "heartbeat", "shards"):
            assert column in printed.partition("[")[0].lower(), printed
        stub.DeregisterWorker(WorkerInfo(worker_id="worker-3"))


def test_a_barrier_that_stalls(cluster: Cluster, tmp_path: Path) -> None:
    """Stopped and resumed in one breath, it goes on from its last checkpoint, as the same task."""
    (tmp_path / "patient.py").write_text(_PATIENT)
    task = run("strata run --detach --workers 2 patient.py", tmp_path, cluster.folder).strip()
    eventually("a checkpoint", lambda: _saved(cluster, task) > 0, within_s=120)
    code = here(block("docs/troubleshooting.md", "A barrier that stalls"), cluster).replace("TASK", task)
    printed = run(code, tmp_path, cluster.folder, within_s=180)
    starts = [int(step) for step in re.findall(r"starts from (\d+)", printed)]
    assert _status(cluster, task) == "completed"
    assert starts
    assert set(starts[-2:]) == {_saved(cluster, task)}, printed


def _saved(cluster: Cluster, task: str) -> int:
    mine = [
        one for one in cluster.get("/api/checkpoints") if one.get("task_id") == task and one["status"] == "completed"
    ]
    return max((int(one["step"]) for one in mine), default=0)


def test_more_log(tmp_path: Path) -> None:
    """Each process has its file, and debug lines are those of the parts that were asked."""
    ports = {f"STRATA_{name}_PORT": "0" for name in ("GRPC", "HTTP", "TELEMETRY")}
    data_dir = tmp_path / "data"
    code = block("docs/troubleshooting.md", "More log")
    with following(code, tmp_path, data_dir, **ports, STRATA_LOG_FORMAT="json"):
        eventually("its start", (data_dir / "endpoints.json").exists, within_s=60)
        grpc_address = json.loads((data_dir / "endpoints.json").read_text())["grpc"]
        with grpc.insecure_channel(grpc_address) as channel:
            stub = CoordinatorStub(channel)
            stub.RegisterWorker(WorkerInfo(worker_id="worker-3"))
        logs = data_dir / "logs"
        eventually("the line", lambda: "worker-3" in (logs / "coordinator.log").read_text(), within_s=30)
    assert {file.stem for file in logs.glob("*.log")} >= {"coordinator", "observatory", "agent"}


def test_each_process_alone(tmp_path: Path) -> None:
    """The head node and a worker node on one machine: the agent's slots are there, and the page is served."""
    grpc_port, http_port, telemetry_port = free_ports(3)
    data_dir = tmp_path / "head"
    code = block("docs/deploying.md", "One process at a time").replace("/var/lib/strata", str(data_dir))
    code = code.replace("head:50051", f"127.0.0.1:{grpc_port}")
    coordinator, observatory, agent = [line for line in code.splitlines() if "strata " in line]
    ports = {
        "STRATA_GRPC_PORT": str(grpc_port),
        "STRATA_HTTP_PORT": str(http_port),
        "STRATA_TELEMETRY_PORT": str(telemetry_port),
    }
    with ExitStack() as stack:
        stack.enter_context(following(coordinator, tmp_path, data_dir, **ports))
        eventually("the coordinator", lambda: (data_dir / "coordinator.json").exists(), within_s=60)
        with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # its types know no methods
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        stack.enter_context(following(observatory, tmp_path, data_dir, **ports))
        eventually("the observatory", lambda: (data_dir / "observatory.json").exists(), within_s=60)
        token = (data_dir / "token").read_text().strip()
        node = tmp_path / "node"
        stack.enter_context(following(agent.replace("…", token), tmp_path, node, **ports))
        page = run(f"curl -s localhost:{http_port}/", tmp_path, data_dir)
        assert page.startswith("<!doctype html>")
        submit = f"COORDINATOR_ADDR=127.0.0.1:{grpc_port} strata run --workers 8 true"  # eight slots, or it waits
        run(submit, tmp_path, data_dir, within_s=120)
    assert list(node.rglob("*")), "the worker node has a data folder of its own"


def test_every_list_of_the_readme(cluster: Cluster, tmp_path: Path) -> None:
    """`strata a · b · c` are three commands; up, demo and run have tests of their own."""
    listed = [line for line in _commands() if "·" in line]
    assert listed
    for line in listed:
        for command in line.removeprefix("strata ").split(" · "):
            if command.endswith(" -f"):
                with following(f"strata {command}", tmp_path, cluster.folder) as lines:
                    eventually(command, partial(list, lines), within_s=60)
            else:
                run(f"strata {command}", tmp_path, cluster.folder)
    run("strata state dump", tmp_path, cluster.folder)
    assert "http_port" in run("strata config show", tmp_path, cluster.folder)


def _commands() -> list[str]:
    return [re.split(r"\s{2,}", line)[0] for line in block("README.md", "Commands").splitlines()]
