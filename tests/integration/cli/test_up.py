"""`strata up` with real processes: it serves, brings back what is killed, and leaves nothing behind.

The module needs about 15 s: it starts real coordinators, observatories and their store.
"""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from strata.datadir import is_ours
from tests.support.cluster import Cluster, descendants, strata, strata_each
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("up") / "data") as running:
        yield running


CHILDREN = ("coordinator", "observatory", "agent")


def test_serves_health_status_and_the_dashboard_shell(cluster: Cluster) -> None:
    assert cluster.get("/api/health") == {"status": "ok"}
    status = eventually("the read model", lambda: _connected(cluster))
    assert status["address"] == cluster.endpoints["grpc"]
    assert status["started_at"] > 0
    with grpc.insecure_channel(cluster.endpoints["grpc"]) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("victim", CHILDREN)
def test_a_killed_child_comes_back_and_the_others_are_not_touched(cluster: Cluster, victim: str) -> None:
    before = {child: cluster.pid_of(child) for child in CHILDREN}
    assert all(before.values()), before
    _process(before[victim]).kill()

    after = eventually(f"a new {victim}", lambda: _other_pid(cluster, victim, before[victim]))

    assert after != before[victim]
    for child in set(CHILDREN) - {victim}:
        assert cluster.pid_of(child) == before[child]
    eventually("the read model", lambda: _connected(cluster))


def test_the_doctor_finds_the_cluster_and_compares_versions_and_clocks(cluster: Cluster) -> None:
    eventually("the read model", lambda: _connected(cluster))
    done = strata("doctor", "--json", "--data-dir", str(cluster.folder))
    findings = {one["check"]: one for one in json.loads(done.stdout)}
    assert (findings["cluster"]["status"], findings["clock"]["status"]) == ("ok", "ok"), done.stdout
    assert cluster.endpoints["grpc"] in findings["cluster"]["found"]
    assert "http port" not in findings  # it is the cluster's own


def test_the_token_is_for_its_owner_alone(cluster: Cluster) -> None:
    token = cluster.folder / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert len(token.read_text().strip()) >= 32


_USES_ALL = """
import numpy as np
import strata
import strata.wandb as wandb

run = strata.init()
run.log({"loss": 1.0, "picture": strata.Image(np.zeros((4, 4)))}, step=1)
with run.checkpoints() as checkpoints:
    checkpoints.save({"weights": np.zeros(4)}, step=1)
run.finish()
with wandb.init(name="other") as other:
    with open(f"{other.dir}/notes.txt", "w") as file:
        file.write("kept")
    other.save("notes.txt")
"""


def test_every_name_in_its_folder_is_known_as_ours(tmp_path: Path) -> None:
    """After a task, media, files and a token, with a run that waits from before there was a cluster. A name that is
    missing keeps a folder of ours open to others."""
    folder = tmp_path / "data"
    script = tmp_path / "train.py"
    script.write_text(_USES_ALL, encoding="utf-8")
    alone = subprocess.run([sys.executable, script], env={**os.environ, "STRATA_DATA_DIR": str(folder)}, timeout=240)
    assert alone.returncode == 0
    with Cluster(folder, "--host", "0.0.0.0") as cluster:  # for its TLS
        assert strata("run", "--data-dir", str(folder), str(script)).returncode == 0
        assert strata("token", "create", "--role", "viewer", "--data-dir", str(folder)).returncode == 0
        seen = {path.name for path in cluster.folder.iterdir()}
    assert {"agent", "checkpoints", "coordinator", "files", "logs", "metrics", "offline", "spool", "tls"} <= seen
    assert {name for name in seen if not is_ours(name)} == set()


def test_a_second_up_on_the_same_folder_is_refused_with_the_owners_pid(cluster: Cluster) -> None:
    refused = strata("up", "--data-dir", str(cluster.folder))
    assert refused.returncode == 1
    assert f"pid {cluster.process.pid}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_kill_of_the_supervisor_leaves_no_orphans(tmp_path: Path) -> None:
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        children = descendants(cluster.process.pid)
        cluster.process.kill()
        eventually("the end of every child", lambda: not [child for child in children if child.is_running()])


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = strata("up", "--data-dir", str(tmp_path / "data"), "--grpc-port", port, "--http-port", "0")
    assert refused.returncode == 1
    assert f"port {port} is taken" in refused.stderr
    assert "--grpc-port" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


BAD_SETTINGS: list[tuple[tuple[str, ...], dict[str, str], str]] = [
    (("--data-dir", "/proc/strata"), {}, "the data folder /proc/strata cannot be used"),
    (("--host", "192.0.2.1", "--grpc-port", "0"), {"STRATA_INSECURE": "1"}, "Check --host and --grpc-port."),
    ((), {"HEARTBEAT_TIMEOUT": "soon"}, "HEARTBEAT_TIMEOUT = 'soon' is not valid"),
    ((), {"STRATA_HARTBEAT_TIMEOUT": "3"}, "Did you mean STRATA_HEARTBEAT_TIMEOUT?"),
    (("--host", "0.0.0.0", "--cert", "none.pem"), {}, "--cert and --key belong together"),
    ((), {"STRATA_LOG": "loud"}, "STRATA_LOG = 'loud' is not valid"),
]


def test_bad_settings_are_one_clear_line(tmp_path: Path) -> None:
    folder = ("--data-dir", str(tmp_path / "data"))  # a later flag wins
    ends = strata_each([(("up", *folder, *flags), environment) for flags, environment, _ in BAD_SETTINGS])
    for done, (_, _, told) in zip(ends, BAD_SETTINGS, strict=True):
        assert done.returncode == 1, done.args
        assert told in done.stderr, done.args
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    ("arguments", "told", "advice"),
    [
        (("run", "--detach", "true"), "no coordinator answers at 127.0.0.1:1", "strata up"),
        (("workers",), "no Strata answers at http://127.0.0.1:1", "Ensure the Coordinator is running"),
    ],
)
def test_nobody_there_is_one_clear_line_with_advice(
    tmp_path: Path, arguments: tuple[str, ...], told: str, advice: str
) -> None:
    nowhere = {"COORDINATOR_ADDR": "127.0.0.1:1", "STRATA_HTTP_PORT": "1", "STRATA_DATA_DIR": str(tmp_path)}
    refused = strata(*arguments, **nowhere)
    assert refused.returncode == 1
    assert told in refused.stderr
    assert advice in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_ctrl_c_leaves_no_process_no_lock_and_no_endpoints(cluster: Cluster) -> None:
    """The last of this file: it ends the cluster that all the others use."""
    _leaves_nothing(cluster, signal.SIGINT)


@pytest.mark.slow
def test_sigterm_leaves_nothing_either(tmp_path: Path) -> None:
    with Cluster(tmp_path / "data", "--no-agent") as cluster:
        _leaves_nothing(cluster, signal.SIGTERM)


def _leaves_nothing(cluster: Cluster, number: int) -> None:
    children = descendants(cluster.process.pid)
    assert len(children) >= 2
    cluster.stop(number)
    assert cluster.process.returncode == 0
    assert [child for child in children if child.is_running()] == []
    assert [path.name for path in cluster.folder.rglob("*.lock")] == []
    assert not (cluster.folder / "endpoints.json").exists()


def _connected(cluster: Cluster) -> dict[str, Any]:
    try:
        status: dict[str, Any] = cluster.get("/api/status")
    except OSError:
        return {}
    return status if status["connected"] else {}


def _other_pid(cluster: Cluster, child: str, before: int | None) -> int | None:
    now = cluster.pid_of(child)
    return now if now != before else None


def _process(pid: int | None) -> psutil.Process:
    assert pid is not None
    return psutil.Process(pid)
