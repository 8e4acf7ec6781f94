"""The coordinator's two journals under the same load: SQLite in the data folder, and PostgreSQL on this machine with
its default durability (fsync, synchronous_commit). Beside them what PostgreSQL alone takes: one connection that
inserts a row and commits, again and again.

A commit holds whatever came while the one before was on its way, so many at a time cost about as much as one. The last
case is what each journal is for: SQLite's coordinator is started again, PostgreSQL's is replaced by one that stood by
and first waits for the lease of 2 s.
"""

import asyncio
import time
from contextlib import ExitStack

import asyncpg

from benchmarks.coordinator import Server, register_workers, serve
from benchmarks.harness import Benchmark, Case, Variant, floor, ours
from benchmarks.measure import stopwatch
from tests.support.postgres import Postgres

__all__ = ["BENCHMARK"]

_ROWS = 2_000
_TOKEN = "journals-benchmark-0123456789"  # noqa: S105  # of a cluster that lives for minutes


def _postgres(stack: ExitStack) -> Postgres:
    return stack.enter_context(Postgres())


def _bare(url: str) -> dict[str, float]:
    return asyncio.run(_insert(url))


async def _insert(url: str) -> dict[str, float]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS bare (number bigserial PRIMARY KEY, body bytea)")
        started = time.perf_counter()
        for _ in range(_ROWS):
            await connection.execute("INSERT INTO bare (body) VALUES ($1)", b"x" * 200)
        return {"registrations_per_s": _ROWS / (time.perf_counter() - started)}
    finally:
        await connection.close()


def _register(stack: ExitStack) -> tuple[Variant, ...]:
    url = _postgres(stack).new_database()
    return (
        ours(serve(stack).load("register", 3_000), label="SQLite"),
        ours(serve(stack, STRATA_JOURNAL=url).load("register", 3_000), name="postgres", label="PostgreSQL"),
        floor("bare INSERT in PostgreSQL, one after the other", lambda: _bare(url)),
    )


def _barrier(stack: ExitStack) -> tuple[Variant, ...]:
    url = _postgres(stack).new_database()
    return (
        ours(serve(stack).load("barrier", 100), label="SQLite"),
        ours(serve(stack, STRATA_JOURNAL=url).load("barrier", 100), name="postgres", label="PostgreSQL"),
    )


def _killed(stack: ExitStack) -> tuple[Variant, ...]:
    """kill -9 until the first answer, with 1,000 workers known."""
    alone = serve(stack)
    register_workers(alone, 1_000)
    url = _postgres(stack).new_database()
    pair = [Server(STRATA_JOURNAL=url, STRATA_TOKEN=_TOKEN) for _ in range(2)]
    for server in pair:
        stack.callback(server.close)
    pair[0].start()
    (pair[0].folder / "token").write_text(_TOKEN)
    register_workers(pair[0], 1_000)
    pair[1].launch()

    def again() -> dict[str, float]:
        alone.kill()
        with stopwatch() as watch:
            alone.start()
        return {"wall_s": watch.wall_s}

    def replaced() -> dict[str, float]:
        leader, standby = pair
        leader.kill()
        with stopwatch() as watch:
            standby.wait()
        leader.launch()
        pair.reverse()
        return {"wall_s": watch.wall_s}

    return ours(again, label="SQLite, started again"), ours(replaced, name="postgres", label="PostgreSQL, the standby")


BENCHMARK = Benchmark(
    name="journals",
    packages=("asyncpg", "grpcio", "uvloop"),
    cases=(
        Case(name="3,000 durable registrations, 64 at a time", variants=_register, repeats=3),
        Case(name="barrier of 100 ranks, all arriving at once, 100 rounds", variants=_barrier, repeats=3),
        Case(name="kill -9 of the coordinator until the first answer", variants=_killed, repeats=5),
    ),
)
