"""The coordinator's two journals under the same load: SQLite in the data folder, and PostgreSQL on this machine with
its default durability (fsync, synchronous_commit). Beside them what PostgreSQL alone takes: one connection that
inserts a row and commits, again and again.

A commit holds whatever came while the one before was on its way, so many at a time cost about as much as one.
"""

import asyncio
import time
from contextlib import ExitStack

import asyncpg

from benchmarks.coordinator import serve
from benchmarks.harness import Benchmark, Case, Variant, floor, ours
from tests.support.postgres import Postgres

__all__ = ["BENCHMARK"]

_ROWS = 200


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


BENCHMARK = Benchmark(
    name="journals",
    packages=("asyncpg", "grpcio", "uvloop"),
    cases=(Case(name="3,000 durable registrations, 64 at a time", variants=_register, repeats=3),),
)
