"""Datasets of every format, for the readers' suite; one PostgreSQL, for the journals'."""

from collections.abc import Iterator

import pytest

from tests.support.datasets import cache_home, dataset
from tests.support.postgres import Postgres, require_postgres

__all__ = ["cache_home", "dataset"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    require_postgres()
    with Postgres() as server:
        yield server
