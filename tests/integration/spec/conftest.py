"""One real `strata up` for all tests of the specification's words, with the log levels of its own example."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster

RUST_LOG = "coordinator=debug,storage=debug,runtime_core=info"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("spec") / "data"
    environment = {"RUST_LOG": RUST_LOG, "HEARTBEAT_TIMEOUT": "3"}
    with Cluster(folder, "--slots", "4", environment=environment) as running:
        yield running.wait_for_store()
