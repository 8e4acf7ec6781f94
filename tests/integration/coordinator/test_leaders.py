"""Several coordinators over one PostgreSQL: the leader is killed, or cut off, under load, and another goes on.

`--failovers 20` is the full measure; the figures of docs/deploying.md are what it prints.
"""

import asyncio
import json
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.client.channel import Channel
from strata.client.leaders import Leaders
from strata.client.tasks import TasksClient
from strata.clock import SystemClock
from strata.errors import Busy, StrataError
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster.follower import CoordinatorFeed
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.stream.broadcaster import Broadcaster
from strata.trust.access import Access
from tests.integration.observatory.conftest import ObservatoryProcess
from tests.support.answers import partly
from tests.support.cluster import Cluster
from tests.support.ensemble import Ensemble, Writer, check_history
from tests.support.ports import free_ports
from tests.support.postgres import Postgres, require_postgres
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    require_postgres()
    with Postgres() as server:
        yield server


@pytest.mark.slow
def test_another_leads_when_the_leader_is_killed_or_stops(postgres: Postgres, tmp_path: Path) -> None:
    """The one test of it that every change must pass; it waits for two leases of 2 s."""
    with Ensemble(tmp_path, postgres, postgres.new_database()) as ensemble, ensemble.writers(2) as writers:
        first = _wait_for_leader(ensemble, "")
        _wait_for_writes(writers)
        ensemble.kill(first)
        second = _wait_for_leader(ensemble, first)
        _wait_for_writes(writers)
        ensemble.start(first)
        ensemble.wait_standby(first, 1)
        ensemble.freeze(second)
        assert _wait_for_leader(ensemble, second) == first
        _wait_for_writes(writers)
        ensemble.thaw(second)
        eventually("the former leader to stand by", lambda: "another coordinator leads now" in ensemble.log(second))
        _wait_for_writes(writers)
    check_history(ensemble.records(), writers, terms=3)


@pytest.mark.slow
def test_strata_up_beside_a_leader_stands_by_and_serves_its_page(postgres: Postgres, tmp_path: Path) -> None:
    with Ensemble(tmp_path, postgres, postgres.new_database(), names=("a",)) as ensemble:
        (port,) = free_ports(1)
        environment = {
            **ensemble.environment(),
            "STRATA_JOURNAL": ensemble.url,
            "STRATA_COORDINATOR_ADDR": f"{ensemble.addresses},127.0.0.1:{port}",
        }
        flags = ("--no-agent", "--grpc-port", str(port))
        with Cluster(tmp_path / "up", *flags, environment=environment) as up:
            assert up.endpoints["grpc"] == environment["STRATA_COORDINATOR_ADDR"]
            eventually("the leader on the page", lambda: _shown(up) == ensemble.addresses)
            ensemble.kill("a")
            eventually("its own coordinator on the page", lambda: _shown(up) == f"127.0.0.1:{port}", within_s=60)
            up.stop(signal.SIGINT)
            assert up.process.stdout is not None
            assert "the coordinator stands by: " in up.process.stdout.read()


def _shown(up: Cluster) -> str:
    status = up.get("/api/status")
    return str(status["address"]) if status["connected"] else ""


def _wait_for_leader(ensemble: Ensemble, other_than: str) -> str:
    def found() -> str | None:
        name = ensemble.leader()
        return name if name != other_than else None

    return eventually("another leader", found)


def _wait_for_writes(writers: list[Writer]) -> None:
    """Each of them has had a write acknowledged since now."""
    counts = [len(writer.acks) + 1 for writer in writers]
    eventually(
        "writes",
        lambda: all(writer.errors or len(writer.acks) > count for writer, count in zip(writers, counts, strict=True)),
        within_s=60,
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["killed", "cut off"])
def test_four_ranks_train_on(how: str, postgres: Postgres, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Same pids, attempt 1, nothing acknowledged lost, one order."""
    failovers = int(pytestconfig.getoption("--failovers"))
    with Ensemble(tmp_path, postgres, postgres.new_database()) as ensemble:
        ensemble.start_agent()
        task_id = ensemble.submit()
        with ensemble.writers(4) as writers:
            eventually("four ranks at work", lambda: all(len(ensemble.notes(rank)) > 5 for rank in range(4)))
            starts = ensemble.starts()
            figures = [_fail_over(ensemble, how, number) for number in range(failovers)]
            task = ensemble.finish(task_id)
        assert ensemble.starts() == starts
        assert {attempt for _, attempt in starts} == {1} == {task.attempt}
        assert task.saved_step
        for rank in range(4):
            assert [step for _, step in ensemble.notes(rank)] == list(range(1, task.saved_step + 1))
    check_history(ensemble.records(), writers, terms=failovers + 1)
    serves, commits = (sorted(column) for column in zip(*figures, strict=True))
    for name, values in (("another serves", serves), ("next commit", commits)):
        middle, p95 = values[len(values) // 2], values[math.ceil(len(values) * 0.95) - 1]
        figure = f"p50 {middle:.2f} s, p95 {p95:.2f} s, longest {values[-1]:.2f} s"
        print(f"{how} {failovers} times: {name} after {figure}")  # noqa: T201  # what it was run for


def _fail_over(ensemble: Ensemble, how: str, number: int) -> tuple[float, float]:
    """Seconds until another serves, and until all four ranks have met at a step again."""
    leader = _wait_for_leader(ensemble, "")
    other = next(name for name in ensemble.names if name != leader)
    time.sleep(0.13 * (number % 8))  # another moment of the lease each time
    before = ensemble.log(leader).count("standing by: ")
    began, began_wall = time.monotonic(), time.time()
    if how == "killed":
        ensemble.kill(leader)
    else:
        ensemble.freeze(leader)
    eventually("another serves", lambda: ensemble.serves(other))
    serves_s = time.monotonic() - began

    def next_commit() -> float | None:
        """The lease is longer than a second: no step can end between its first moments and the next leader's."""
        first = [next((at for at, _ in ensemble.notes(rank) if at > began_wall + 1.0), None) for rank in range(4)]
        found = [at for at in first if at is not None]
        return max(found) if len(found) == len(first) else None

    committed_at = eventually("the next commit", next_commit)
    if how == "killed":
        ensemble.start(leader)
    else:
        ensemble.thaw(leader)
    ensemble.wait_standby(leader, before + 1)
    return serves_s, committed_at - began_wall


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_database_is_away_restarted_and_switched_over(tmp_path: Path) -> None:
    """For half a minute commands are answered with Busy; ranks train on as the same processes; nothing is lost."""
    require_postgres()
    with Postgres() as first, Postgres(primary=first) as second:
        first.be_synchronous()
        database = first.new_database().rpartition("/")[2]
        url = f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/{database}"
        with Ensemble(tmp_path, first, url) as ensemble:
            ensemble.start_agent()
            task_id = ensemble.submit()
            with ensemble.writers(4) as writers:
                eventually("four ranks at work", lambda: all(len(ensemble.notes(rank)) > 5 for rank in range(4)))
                starts = ensemble.starts()
                leader = _wait_for_leader(ensemble, "")
                first.restart()
                _wait_for_writes(writers)
                first.end()
                away_since = time.monotonic()
                eventually("Busy", lambda: isinstance(_refusal(ensemble, leader), Busy))
                eventually("half a minute", lambda: time.monotonic() - away_since > 30)
                assert isinstance(_refusal(ensemble, leader), Busy)
                first.start()
                _wait_for_writes(writers)
                first.kill()
                second.promote()
                ensemble.postgres = second
                _wait_for_writes(writers)
                task = ensemble.finish(task_id)
            assert ensemble.starts() == starts
            assert task.attempt == 1
        check_history(ensemble.records(), writers, terms=None)


def _refusal(ensemble: Ensemble, name: str) -> StrataError | None:
    """How a coordinator refuses a command now."""
    with Channel(ensemble.address(name), access=Access(token=ensemble.token), patience_s=0.0) as channel:
        try:
            TasksClient(channel).stop("none")
        except StrataError as error:
            return error
        return None


@pytest.mark.slow
def test_the_observatory_follows_the_leader(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first command after the change is answered; no event comes twice, and none is missing."""
    with Ensemble(tmp_path, postgres, postgres.new_database()) as ensemble:
        monkeypatch.setenv("STRATA_TOKEN", ensemble.token)
        observatory = ObservatoryProcess(tmp_path / "observatory", coordinator=ensemble.addresses)
        try:
            observatory.start()
            leader = _wait_for_leader(ensemble, "")
            eventually("the connection", lambda: _followed(observatory) == ensemble.address(leader))
            for number in range(4):
                assert _register(observatory, f"before-{number}") == 200
            ensemble.kill(leader)
            assert _register(observatory, "after") == 200
            eventually("the next leader", lambda: _followed(observatory) not in ("", ensemble.address(leader)))
            shown = [one["id"] for one in observatory.get("/api/datasets")]
            assert sorted(shown) == ["after", *(f"before-{number}" for number in range(4))]
            registered = [json.loads(body)["dataset_id"] for _, kind, body in ensemble.records() if kind == _REGISTERED]
            assert sorted(registered) == sorted(shown)
        finally:
            observatory.dispose()


_REGISTERED = "DatasetRegistered"


def _followed(observatory: ObservatoryProcess) -> str:
    status = observatory.get("/api/status")
    return str(status["address"]) if status["connected"] else ""


def _register(observatory: ObservatoryProcess, name: str) -> int:
    body = {"id": name, "path": "p", "format": "csv", "total_samples": 4}
    return int(observatory.post("/api/datasets", body).status_code)


@pytest.mark.slow
async def test_the_feed_goes_on_where_it_was(postgres: Postgres, tmp_path: Path) -> None:
    """Every event once and in order over a change of the leader."""
    clock = SystemClock()
    published = PublishedCluster(
        Broadcaster(lambda _: b"{}", clock), clock, lambda: partly(Status), SetAside(clock, lambda _: None)
    )
    seen: list[int] = []
    published.listeners.append(lambda event, seq: seen.append(seq))
    url = await asyncio.to_thread(postgres.new_database)
    with Ensemble(tmp_path, postgres, url) as ensemble:
        feed = CoordinatorFeed(Leaders(ensemble.addresses), Access(token=ensemble.token), published)
        await feed.start()
        with ensemble.writers(2) as writers:
            leader = await asyncio.to_thread(_wait_for_leader, ensemble, "")
            await asyncio.to_thread(_wait_for_writes, writers)
            async with asyncio.timeout(60):
                while not seen:  # noqa: ASYNC110  # on a busy machine it may come after all that was written until now
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(ensemble.kill, leader)
            await asyncio.to_thread(_wait_for_writes, writers)
        records = await asyncio.to_thread(ensemble.records)
        await published.shown(records[-1][0])
        await feed.stop()
    assert seen == list(range(seen[0], records[-1][0] + 1))
    assert seen[0] < next(seq for seq, kind, _ in records[1:] if kind == "ClusterStarted")
