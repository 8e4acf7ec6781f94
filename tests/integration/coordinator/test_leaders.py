"""Several coordinators over one PostgreSQL: the leader is killed, or cut off, under load, and another goes on.

`--failovers 20` is the full measure; the figures of docs/deploying.md are what it prints.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ensemble import Ensemble, Writer, check_history
from tests.support.postgres import Postgres, require_postgres
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    require_postgres()
    with Postgres() as server:
        yield server


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
        middle, p95 = values[len(values) // 2], values[min(len(values) - 1, int(len(values) * 0.95))]
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
