"""HTTP/2 clients that are not gRPC's own: nghttp2's, from Debian's nghttp2-client (`make h2load`)."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.coordinator_process import CoordinatorProcess

pytestmark = pytest.mark.skipif(shutil.which("h2load") is None, reason="nghttp2-client is not installed")
CALL = ("-H", "content-type: application/grpc", "-H", "te: trailers")
CHECK = "grpc.health.v1.Health/Check"


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """One for all: nobody asks it for more than its health."""
    with CoordinatorProcess(tmp_path_factory.mktemp("peers") / "data") as process:
        yield process


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A message without fields, as gRPC frames it."""
    path = tmp_path / "empty"
    path.write_bytes(b"\0\0\0\0\0")
    return str(path)


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("at_once", [1, 100, 3_000])
def test_every_call_of_a_load_is_answered(coordinator: CoordinatorProcess, empty: str, at_once: int) -> None:
    """Also when the client would like more calls at once than the server allows."""
    url = f"http://{coordinator.address}/{CHECK}"
    shown = run("h2load", "-n", "3000", "-c", "3", "-m", str(at_once), "-d", empty, *CALL, url)
    found = re.search(r"requests: .*, (\d+) succeeded, (\d+) failed, (\d+) errored", shown)
    assert found is not None, shown
    assert found.groups() == ("3000", "0", "0"), shown


def test_one_call_frame_by_frame(coordinator: CoordinatorProcess, empty: str) -> None:
    shown = run("nghttp", "-v", "-d", empty, *CALL, f"http://{coordinator.address}/{CHECK}")
    assert "[SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1000]" in shown
    assert "grpc-status: 0" in shown
    missing = run("nghttp", "-v", "-d", empty, *CALL, f"http://{coordinator.address}/no.Such/Method")
    assert "grpc-status: 12" in missing
