"""Real coordinators and real plain workers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from grpc_tools import protoc  # type: ignore[import-untyped]  # ships no types

from tests.support.coordinator_process import CoordinatorProcess
from tests.support.plain_client import PlainClient

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from plain.proto as a stranger would make them."""
    folder = tmp_path_factory.mktemp("stubs")
    outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main(["protoc", f"-I{HERE}", *outputs, str(HERE / "plain.proto")]) == 0
    return folder


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    """With a lease of a second: deaths are seen quickly."""
    with CoordinatorProcess(tmp_path / "data", HEARTBEAT_TIMEOUT="1") as process:
        yield process


@pytest.fixture
def plain(coordinator: CoordinatorProcess, stubs: Path) -> Iterator[Callable[[], PlainClient]]:
    """Starts a plain worker process each time it is called."""
    with ExitStack() as stack:
        script = HERE / "plain_worker.py"
        yield lambda: stack.enter_context(PlainClient(script, stubs, coordinator.address))
