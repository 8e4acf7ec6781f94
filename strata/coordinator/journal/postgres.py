"""The journal in PostgreSQL, for a coordinator that must survive its host. Any number of processes open it; one holds
the lease and writes, the others wait (docs/adr/0021).

Every commit is one statement, which is one transaction: it moves the lease's row from the last record to the new ones,
on condition that term and last record are still this writer's. So no commit of a former holder can follow the next
one's, a statement that is asked twice takes effect once, and nobody who stands still can hold a lock.
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping

from strata.coordinator.journal.base import OUTCOMES, Record, Snapshot, Stored
from strata.coordinator.journal.lease import LEASE_S, POLL_S, RENEW_S, Lease, Vigil
from strata.coordinator.journal.postgres_link import Connection, PostgresLink, shown_database
from strata.errors import InvalidConfig, NotLeader, StorageError

__all__ = ["PostgresJournal"]

_log = logging.getLogger(__name__)

_FAREWELL_S = 5.0
_READ_S = 60.0
_VERSION = 1

_SCHEMA = """
    CREATE TABLE strata_records (
        seq bigint PRIMARY KEY, at double precision NOT NULL, kind text NOT NULL, body bytea NOT NULL
    );
    CREATE TABLE strata_snapshots (seq bigint PRIMARY KEY, body bytea NOT NULL, outcomes_from bigint NOT NULL);
    CREATE TABLE strata_private (name text PRIMARY KEY, body bytea NOT NULL);
    CREATE TABLE strata_lease (
        version integer NOT NULL, term bigint NOT NULL, beat bigint NOT NULL, seq bigint NOT NULL, holder text NOT NULL,
        token text NOT NULL
    ) WITH (fillfactor = 10);
    INSERT INTO strata_lease VALUES (1, 0, 0, 0, '', '');
"""
_IS_MADE = "SELECT to_regclass('strata_lease') IS NOT NULL"
_LOOK = "SELECT term, beat, seq, holder FROM strata_lease"
_TAKE = """
    UPDATE strata_lease SET term = term + 1, beat = 0, holder = $3, token = $4 WHERE term = $1 AND beat = $2
    RETURNING term, beat, seq, holder
"""
_RENEW = "UPDATE strata_lease SET beat = beat + 1 WHERE term = $1 AND seq = $2 RETURNING true"
_RELEASE = "UPDATE strata_lease SET holder = '' WHERE term = $1"
_COMMIT = """
    WITH held AS (
        UPDATE strata_lease SET beat = beat + 1, seq = $3 WHERE term = $1 AND seq = $2 RETURNING 1
    ), told AS (
        INSERT INTO strata_private SELECT p.* FROM held, unnest($8::text[], $9::bytea[]) p
        ON CONFLICT (name) DO UPDATE SET body = excluded.body
    ), written AS (
        INSERT INTO strata_records
        SELECT r.* FROM held, unnest($4::bigint[], $5::double precision[], $6::text[], $7::bytea[]) r
    )
    SELECT true FROM held
"""
_REPLACE_SNAPSHOT = """
    WITH held AS (
        UPDATE strata_lease SET beat = beat + 1 WHERE term = $1 AND seq = $2 RETURNING 1
    ), older AS (
        DELETE FROM strata_snapshots USING held WHERE strata_snapshots.seq < $3
    ), trimmed AS (
        DELETE FROM strata_records r USING held WHERE r.seq <= $3 AND (r.seq < $5 OR NOT r.kind = ANY($6::text[]))
    ), kept AS (
        INSERT INTO strata_snapshots SELECT $3, $4, $5 FROM held ON CONFLICT DO NOTHING
    )
    SELECT true FROM held
"""


class PostgresJournal:
    """`url` names the database, `token` the cluster: who has another must not lead, or no rank could come back.
    `on_standby` hears who leads while this one waits."""

    def __init__(self, url: str, token: str, on_standby: Callable[[str], None] = lambda leader: None) -> None:
        self._url = url
        self._token = hashlib.blake2b(token.encode(), digest_size=16, person=b"strata journal").hexdigest()
        self._holder = f"{socket.gethostname()}, pid {os.getpid()}"
        self._on_standby = on_standby
        self._link = PostgresLink(url)
        self._records: list[Record] = []
        self._private: dict[str, bytes] = {}
        self._snapshot: Snapshot | None = None
        self._due = asyncio.Event()
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        self._term = 0
        self._seq = 0
        self._valid_until = 0.0
        self._on_durable: Callable[[int], None] = lambda seq: None
        self._on_failure: Callable[[BaseException], None] = lambda error: None
        self._commit_times: deque[float] = deque(maxlen=10_000)

    async def open(self, on_durable: Callable[[int], None], on_failure: Callable[[BaseException], None]) -> Stored:
        self._on_durable, self._on_failure = on_durable, on_failure
        try:
            await self._link.ask(_make_schema)
            await self._link.ask(self._check_cluster)
            await self._lead()
        except BaseException:  # cancelled while it stood by, or refused
            self._link.drop()
            raise
        self._writing = asyncio.create_task(self._write())
        reader = PostgresLink(self._url)
        try:
            return await reader.ask(_read, _READ_S)
        finally:
            reader.drop()

    def append(self, records: list[Record], private: Mapping[str, bytes] | None = None) -> None:
        self._records.extend(records)
        self._private.update(private or {})
        self._due.set()

    def keep(self, record: Record) -> bool:
        """Who leads next may be on another host: there is no place but the database."""
        del record
        return False

    def save_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._due.set()

    def leads(self) -> bool:
        return _clock() < self._valid_until

    def take_commit_times(self) -> list[float]:
        return [self._commit_times.popleft() for _ in range(len(self._commit_times))]

    async def close(self) -> None:
        """Writes what is queued and gives the lease up. A database that is away is not waited for: nothing that waits
        was acknowledged."""
        self._closing = True
        self._due.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=_FAREWELL_S)
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        self._link.drop()

    # --- becoming the writer

    async def _check_cluster(self, connection: Connection) -> None:
        version, token = await connection.fetchrow("SELECT version, token FROM strata_lease")
        if version > _VERSION:
            raise InvalidConfig(
                f"the journal has schema version {version}, this release knows {_VERSION}",
                hint="It was written by a newer Strata: upgrade this one.",
            )
        if token and token != self._token:
            raise InvalidConfig(
                f"the journal in {shown_database(self._url)} belongs to a cluster with another token",
                hint="Give every coordinator the same STRATA_TOKEN, or the same <data-dir>/token.",
            )

    async def _lead(self) -> None:
        """Returns when this process holds the lease."""
        vigil, told = Vigil(), ""
        while True:
            asked_at = _clock()
            lease = Lease(*await self._link.ask(lambda connection: connection.fetchrow(_LOOK)))
            if vigil.is_over(lease, asked_at, _clock()) and await self._take(lease):
                return
            if lease.holder != told:
                told = lease.holder
                _log.info("standing by: %s leads (term %d)", told or "nobody", lease.term)
                if told:
                    self._on_standby(told)
            await asyncio.sleep(POLL_S)

    async def _take(self, lease: Lease) -> bool:
        asked_at = _clock()
        found = await self._link.ask(
            lambda connection: connection.fetchrow(_TAKE, lease.term, lease.beat, self._holder, self._token)
        )
        if found is None:  # somebody else was first, or its holder is back
            return False
        self._term, _, self._seq, _ = found
        self._valid_until = asked_at + LEASE_S
        _log.info("leading, term %d of the lease, from record %d on", self._term, self._seq)
        return True

    # --- writing

    async def _write(self) -> None:
        try:
            while not (self._closing and not self._records and self._snapshot is None):
                await self._wait()
                records, self._records = self._records, []
                private, self._private = self._private, {}
                snapshot, self._snapshot = self._snapshot, None
                await self._commit(records, private)
                if snapshot is not None:
                    await self._replace_snapshot(snapshot)
            self._valid_until = 0.0
            await self._link.ask(lambda connection: connection.execute(_RELEASE, self._term))
        except Exception as error:
            self._valid_until = 0.0
            self._on_failure(error)

    async def _wait(self) -> None:
        """Until there is something to write, or the lease has to be renewed."""
        if not self._due.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    await self._due.wait()
        self._due.clear()

    async def _commit(self, records: list[Record], private: dict[str, bytes]) -> None:
        started, asked_at = time.perf_counter(), _clock()
        last = records[-1].seq if records else self._seq
        if records:
            columns = zip(*((one.seq, one.at, one.kind, one.body) for one in records), strict=True)
            values = (self._term, self._seq, last, *columns, list(private), list(private.values()))
            done = await self._link.ask(lambda connection: connection.fetchval(_COMMIT, *values))
        else:
            done = None
        # A commit that is not accepted may be our own, asked before and not answered. The renewal tells; and being a
        # later commit, it is nowhere without that one, not on a synchronous standby either.
        done = done or await self._link.ask(lambda connection: connection.fetchval(_RENEW, self._term, last))
        if not done:
            raise await self._explain()
        self._seq, self._valid_until = last, asked_at + LEASE_S
        if records:
            self._commit_times.append(time.perf_counter() - started)
            self._on_durable(last)

    async def _replace_snapshot(self, snapshot: Snapshot) -> None:
        values = (self._term, self._seq, snapshot.seq, snapshot.body, snapshot.outcomes_from, list(OUTCOMES))
        if not await self._link.ask(lambda connection: connection.fetchval(_REPLACE_SNAPSHOT, *values)):
            raise await self._explain()

    async def _explain(self) -> Exception:
        """Why the lease's row is not as this writer left it."""
        lease = Lease(*await self._link.ask(lambda connection: connection.fetchrow(_LOOK)))
        if lease.term != self._term:
            return NotLeader(f"another coordinator leads now: {lease.holder or 'nobody'} (term {lease.term})")
        return StorageError(
            f"the journal's database went back in time: it ends with record {lease.seq}, we had committed {self._seq}",
            hint="Its standby was not synchronous (synchronous_standby_names). A restart goes on from what it has.",
        )


def _clock() -> float:
    """Seconds that also pass while the machine sleeps: a lease does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def _make_schema(connection: Connection) -> None:
    """Needs the right to create tables only where there are none yet. Of two that start at once one makes them: the
    lock is the session's, so that the second look begins a transaction, and sees what the other has done."""
    if await connection.fetchval(_IS_MADE):
        return
    await connection.execute("SELECT pg_advisory_lock(hashtext('strata journal'))")
    if not await connection.fetchval(_IS_MADE):
        await connection.execute(_SCHEMA)  # all of it, or nothing
    await connection.execute("SELECT pg_advisory_unlock(hashtext('strata journal'))")


async def _read(connection: Connection) -> Stored:
    row = await connection.fetchrow("SELECT seq, body, outcomes_from FROM strata_snapshots ORDER BY seq DESC LIMIT 1")
    snapshot = Snapshot(*row) if row else None
    seq, outcomes_from = (snapshot.seq, snapshot.outcomes_from) if snapshot else (0, 0)
    left_out = await connection.fetch(
        "SELECT seq, at, kind, body FROM strata_records WHERE seq BETWEEN $1 AND $2 AND kind = ANY($3) ORDER BY seq",
        outcomes_from,
        seq,
        list(OUTCOMES),
    )
    after = await connection.fetch("SELECT seq, at, kind, body FROM strata_records WHERE seq > $1 ORDER BY seq", seq)
    private = await connection.fetch("SELECT name, body FROM strata_private")
    outcomes, records = ([Record(*values) for values in rows] for rows in (left_out, after))
    return Stored(snapshot, outcomes, records, dict(private))
