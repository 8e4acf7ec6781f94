"""The store over the network, through clickhouse-connect: rights as a DBA gives them, a schema of another release, and
servers of which one is away.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from strata.errors import InvalidArgument, StoreUnavailable
from strata.observatory.store.config import StoreConfig
from strata.observatory.store.supervised import SupervisedStore
from strata.observatory.store.table import Table
from strata.trust.authority import issue, make_authority
from tests.support.clickhouse import clickhouse
from tests.support.ports import free_ports
from tests.support.waiting import eventually

# A server of one's own, host:port, whose user `default` may do all. Popped: Strata refuses settings it does not know.
_SERVER = os.environ.pop("STRATA_TEST_CLICKHOUSE", "")
_LOSS = Table.of({"run_id": ["r"], "metric": ["loss"], "value": [0.5]})


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with clickhouse(tmp_path_factory.mktemp("server") / "db") as port:
        yield port


@asynccontextmanager
async def _store(port: int, database: str, user: str = "default", host: str = "") -> AsyncIterator[SupervisedStore]:
    there = host or f"127.0.0.1:{port}"
    async with _opened(StoreConfig(path=None, host=there, user=user, database=database, retention_days=30)) as store:
        yield store


@asynccontextmanager
async def _opened(config: StoreConfig) -> AsyncIterator[SupervisedStore]:
    """Once it is ready, or has said why it is not."""
    store = SupervisedStore(config)
    await store.start()
    try:
        await asyncio.to_thread(eventually, "a word of the store", lambda: store.ready or store.problem != "starting")
        yield store
    finally:
        await store.stop()


async def _count(store: SupervisedStore) -> int:
    found = await store.query("SELECT sum(num_points) AS n FROM {db}.series_rollup")
    return int(found["n"][0])


@pytest.mark.parametrize(
    "there", ["", pytest.param(_SERVER, marks=pytest.mark.skipif(not _SERVER, reason="not named"))]
)
async def test_a_server_takes_points_and_gives_them_back(port: int, there: str) -> None:
    """Here the engine behind its HTTP interface; STRATA_TEST_CLICKHOUSE=host:port names a real one, too."""
    async with _store(port, f"strata_test_{uuid.uuid4().hex}", host=there) as store:
        assert (store.ready, store.limits, store.problem) == (True, "", None)
        for token in ("1", "2"):
            await store.insert("metric_points", _LOSS, token=token)
        try:
            found = await store.query("SELECT count() AS n, max(value) AS top FROM {db}.metric_points")
            assert found.to_rows() == [{"n": 2, "top": 0.5}]
        finally:
            await store.command("DROP DATABASE {db}")


@pytest.mark.slow
async def test_an_account_that_may_read_and_insert_has_all_there_is(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody with more rights has made the tables."""
    async with _store(port, "handed_out") as admin:
        await admin.insert("metric_points", _LOSS, token="1")
    async with _store(port, "handed_out", "writer") as store:
        assert (store.ready, store.limits, store.problem) == (True, "", None)
        await store.insert("metric_points", _LOSS, token="2")
        assert await _count(store) == 2, "from the rollup, as with every right"
    assert "STRATA_RETENTION_DAYS has no effect: ClickHouse says: writer: Not enough privileges" in caplog.text


async def test_without_our_tables_and_without_the_right_to_make_them_the_public_one_is_used(port: int) -> None:
    async with _store(port, "public") as admin:
        await admin.insert("metric_points", _LOSS, token="1")
        await admin.command("DROP TABLE {db}.schema_version")
    async with _store(port, "public", "writer") as store:
        assert store.ready
        assert store.limits.startswith("tables cannot be created: ClickHouse says: writer: Not enough privileges")
        assert await _count(store) == 1
        assert (await store.ask("SELECT count() AS n FROM metric_points")).to_rows() == [{"n": 1}]
        for table in ("runs", "logs"):
            with pytest.raises(InvalidArgument, match=f"this store has no table {table}, only metric_points: "):
                await store.ask(f"SELECT count() FROM {table}")  # noqa: S608 - of two constants


async def test_a_newer_schema_is_refused_in_one_sentence(port: int) -> None:
    async with _store(port, "newer") as admin:
        await admin.command("INSERT INTO {db}.schema_version (version) VALUES (99)")
    async with _store(port, "newer") as store:
        assert not store.ready
        assert "was written by a newer Strata (schema version 99, this one knows " in (store.problem or "")


async def test_of_several_servers_one_that_answers_is_used(port: int) -> None:
    (nobody,) = free_ports(1)
    async with _store(port, "several", host=f"127.0.0.1:{nobody},127.0.0.1:{port}") as store:
        assert store.ready
    async with _store(port, "several", host=f"127.0.0.1:{nobody}") as store:
        assert "ClickHouse cannot be reached: " in (store.problem or "")
        assert "Connection refused" in (store.problem or "")


async def _failures_until_answered(ask: Callable[[str], Awaitable[Table]]) -> int:
    for failures in range(10):
        with suppress(StoreUnavailable):
            assert (await ask("SELECT 1 AS n")).to_rows() == [{"n": 1}]
            return failures
    raise AssertionError("no server was found")


async def test_when_the_server_goes_away_the_next_one_is_asked(port: int, tmp_path: Path) -> None:
    """A call that was under way fails: nobody knows what became of it. Each of two readers may fail once, and the first
    to find the next server may be asked again before the second has failed."""
    with ExitStack() as going:
        first = going.enter_context(clickhouse(tmp_path / "db"))
        async with _store(port, "going", host=f"127.0.0.1:{first},127.0.0.1:{port}") as store:
            assert store.ready
            going.close()
            for ask, most in ((store.query, 2), (store.ask, 1)):
                assert await _failures_until_answered(ask) <= most
            with pytest.raises(InvalidArgument):
                await store.ask("DROP TABLE runs")


@pytest.mark.slow
async def test_certificates_are_checked_and_shown(tmp_path: Path) -> None:
    """The server lets in who shows a certificate of its own CA; with it, a user needs no password."""
    ca, ca_key = make_authority(datetime.now(UTC))
    chain, key = issue(ca, ca_key, ["127.0.0.1"], datetime.now(UTC))
    ours, our_key = make_authority(datetime.now(UTC))
    files = {"ca": ca, "server": chain, "server.key": key, "ours": ours, "ours.key": our_key}
    for name, pem in files.items():
        (tmp_path / name).write_bytes(pem)
    known: dict[str, Any] = {"ca_file": str(tmp_path / "ca")}
    shown: dict[str, Any] = {"cert": str(tmp_path / "ours"), "key": str(tmp_path / "ours.key")}
    with clickhouse(tmp_path / "db", tmp_path / "server", tmp_path / "server.key", tmp_path / "ours") as port:
        for given in ({**known, **shown}, {**known, **shown, "password": "hush"}):
            async with _opened(StoreConfig(path=None, host=f"127.0.0.1:{port}", secure=True, **given)) as store:
                assert store.ready, store.problem
        async with _opened(StoreConfig(path=None, host=f"127.0.0.1:{port}", secure=True, **shown)) as store:
            assert "ClickHouse cannot be reached: certificate verify failed" in (store.problem or "")
        async with _opened(StoreConfig(path=None, host=f"127.0.0.1:{port}", secure=True, **known)) as store:
            assert not store.ready
            assert "ClickHouse cannot be reached: " in (store.problem or "")
