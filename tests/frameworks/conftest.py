"""A cluster of two slots for the examples of one framework."""

from collections.abc import Iterator

import pytest

from tests.support.nodes import Nodes


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("framework"), slots=2) as nodes:
        nodes.start("coordinator", "observatory", "agent")
        yield nodes
