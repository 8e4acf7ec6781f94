"""One real `strata up` for all tests of the specification's words, with the log levels of its own example, and workers
that were built from the original proto alone.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from grpc_tools import protoc  # type: ignore[import-untyped]  # ships no types

from tests.support.cluster import Cluster
from tests.support.plain_client import PlainClient

RUST_LOG = "coordinator=debug,storage=debug,runtime_core=info"
ORIGINAL = Path(__file__).resolve().parents[1] / "coordinator"


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Of this package alone: scripts of later tests would find it and send it their metrics."""
    folder: Path = tmp_path_factory.mktemp("spec") / "data"
    environment = {"RUST_LOG": RUST_LOG, "HEARTBEAT_TIMEOUT": "5"}
    with Cluster(folder, "--slots", "4", environment=environment) as running:
        yield running.wait_for_store()


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from plain.proto as a stranger would make them."""
    folder = tmp_path_factory.mktemp("stubs")
    outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main(["protoc", f"-I{ORIGINAL}", *outputs, str(ORIGINAL / "plain.proto")]) == 0
    return folder


@pytest.fixture
def plain(cluster: Cluster, stubs: Path) -> Iterator[Callable[[], PlainClient]]:
    """Starts a plain worker process each time it is called."""
    with ExitStack() as stack:
        script = ORIGINAL / "plain_worker.py"
        yield lambda: stack.enter_context(PlainClient(script, stubs, cluster.endpoints["grpc"]))
