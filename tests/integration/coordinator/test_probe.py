"""The coordinator's own /health and /metrics, without an observatory."""

import contextlib
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.support.nodes import Nodes
from tests.support.ports import free_ports


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("probe")
    (port,) = free_ports(1)
    (folder / ".env").write_text(f"STRATA_COORDINATOR_HTTP_PORT={port}\n")
    with Nodes(folder) as nodes:
        nodes.start("coordinator", "agent")
        nodes.submit(name="waits", worker_count=99, entrypoint=("true",))
        yield port


def _get(port: int, path: str, **headers: str) -> tuple[int, str]:
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_its_health_and_figures_are_there_without_anybody_else(port: int) -> None:
    assert _get(port, "/health") == (200, "ok\n")
    status, text = _get(port, "/metrics")
    assert status == 200
    assert "strata_coordinator_steady 1.0" in text
    assert 'strata_coordinator_agents{state="ready"} 1.0' in text
    assert 'strata_coordinator_tasks{status="queued"} 1.0' in text
    assert re.search(r'strata_coordinator_task_attempt{task="waits-\w+",name="waits"} 0.0', text)
    assert re.search(r'strata_coordinator_agent_slots{agent="[^"]+",host="[^"]+"} \d', text)
    assert "task_checkpoint_timestamp_seconds{" not in text  # there is none


def test_promtool_accepts_it(port: int) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; `make promtool` installs it")
    text = _get(port, "/metrics")[1]
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_another_name_or_another_path_gets_nothing(port: int) -> None:
    """A page whose name leads to this machine is not its owner."""
    assert _get(port, "/metrics", Host="evil.example")[0] == 401
    assert _get(port, "/health", Host="evil.example")[0] == 200
    assert _get(port, "/api/tasks")[0] == 404


def test_whoever_sends_nothing_or_too_much_is_let_go_and_others_are_served(port: int) -> None:
    refused = contextlib.suppress(ConnectionError)  # what was not read makes it a reset
    with refused, socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert connection.recv(1) == b""
    assert _get(port, "/health") == (200, "ok\n")
