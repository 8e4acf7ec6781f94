"""Rows on their way into the store: whole, or, where the store refuses them, halved until what it refuses is alone.

What is refused for good is kept in a file beside the spool and set aside; the rest of its group arrives. A repeat of
points looks for them first: metric_points is open to foreign writers, so the engine must not know inserts by content.
"""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.errors import Busy, InvalidArgument, StoreUnavailable, StrataError
from strata.observatory.background.setaside import SetAside
from strata.observatory.store.base import Store
from strata.observatory.store.table import Table

__all__ = ["Inserts", "Sent"]

_log = logging.getLogger(__name__)
# A store that refuses this much of one group refuses in pieces: looking for each single row would take minutes.
_MAX_SINGLES = 200
# So many refusals and nothing let in: the store is at fault, not a row.
_ENOUGH = 16
_MAX_FILE_BYTES = 64 << 20
_PART = "metric store"

_SERIES = """run_id = {run_id:String} AND metric = {metric:String} AND host = {host:String} AND rank = {rank:UInt32}
AND device = {device:UInt16}"""
_NUM_POINTS = f"SELECT count() AS n FROM {{db}}.metric_points WHERE {_SERIES}"  # noqa: S608 - of constants
_NUM_COUNTED = f"SELECT sum(num_points) AS n FROM {{db}}.series_rollup WHERE {_SERIES}"  # noqa: S608 - of constants
_STORED = f"{_NUM_POINTS} AND step = {{step:UInt64}} AND toUnixTimestamp64Milli(event_time) = {{time:Int64}}"
_RUNNING = "SELECT count() AS n FROM system.processes WHERE startsWith(query_id, {token:String})"


@dataclass(frozen=True, slots=True)
class Sent:
    """Rows that the store took under one token."""

    table: str
    rows: Table
    token: str


@dataclass(slots=True)
class _Sorting:
    """One group while refused rows are separated from the others. `stubborn`: a refusal may be final whatever its
    reason; `repeated`: some of the rows may be stored already."""

    table: str
    stubborn: bool
    repeated: bool
    sent: list[Sent] = field(default_factory=list)
    refused: list[tuple[Table, StrataError]] = field(default_factory=list)

    def may_be_final(self, error: StrataError) -> bool:
        """A store that says it is busy, full or forbidden speaks of itself, not of a row."""
        if isinstance(error, InvalidArgument):
            return True
        hopeless = len(self.refused) >= _ENOUGH and not self.sent
        return self.stubborn and not isinstance(error, Busy) and not hopeless


class Inserts:
    """Deterministic: the same rows under the same token are cut in the same places, so a repeat changes nothing."""

    def __init__(self, store: Store, aside: SetAside, file: Path) -> None:
        self._store = store
        self._aside = aside
        self._file = file

    async def send(self, table: str, rows: Table, token: str, *, stubborn: bool, repeated: bool) -> list[Sent]:
        """What arrived. Raises when the store is away, or refuses for a reason that may pass; `stubborn` is for a
        group that was refused again and again: then a refusal counts as final as long as other rows are let in.
        A `repeated` group was begun before, and nobody knows how much of it is in the store."""
        if repeated:
            await self._check_over(token)
        sorting = _Sorting(table, stubborn, repeated)
        await self._try(sorting, rows, token)
        unsure = [error for _, error in sorting.refused if not isinstance(error, InvalidArgument)]
        if unsure and not sorting.sent:
            raise unsure[0]
        for refused, error in sorting.refused:
            self._set_aside(table, refused, error)
        return sorting.sent

    async def verify(self, sent: Sent) -> None:
        """After a crash: the engine notes a token a moment before the rows are there. One row tells of all."""
        if "id" in sent.rows.columns and not await self._has_row(sent.table, sent.rows["id"][0]):
            await self._store.insert(sent.table, sent.rows, token=f"{sent.token}:again")

    async def _try(self, sorting: _Sorting, rows: Table, token: str) -> None:
        try:
            by_content = sorting.repeated and sorting.table == "metric_points"
            new = await self._not_stored(rows, token) if by_content else rows
            if new.num_rows:
                await self._store.insert(sorting.table, new, token=token)
        except StoreUnavailable:
            raise
        except StrataError as error:
            if not sorting.may_be_final(error):
                raise
            if rows.num_rows == 1 or len(sorting.refused) >= _MAX_SINGLES:
                sorting.refused.append((rows, error))
                return
            half = rows.num_rows // 2
            await self._try(sorting, rows.take(slice(half)), f"{token}:0")
            await self._try(sorting, rows.take(slice(half, None)), f"{token}:1")
        else:
            sorting.sent.append(Sent(sorting.table, rows, token))

    async def _check_over(self, token: str) -> None:
        """An insert whose answer was lost may still run on a server: until it ends nobody can tell what is stored."""
        try:
            running = await self._number(_RUNNING, {"token": token})
        except StoreUnavailable:
            raise
        except StrataError as error:  # a user who may not see even its own queries
            _log.info("whether an earlier insert still runs is unknown: %s", error.message)
            return
        if running:
            raise Busy("an insert whose answer was lost still runs")

    async def _not_stored(self, rows: Table, token: str) -> Table:
        """Month by month: rows of one insert and one partition arrive together or not at all."""
        times = rows["event_time"].to_numpy()
        months = times.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
        stored = np.zeros(rows.num_rows, dtype=bool)
        for month in np.unique(months):
            chosen = months == month
            stored[chosen] = await self._stored(rows.take(chosen), times[chosen])
        if stored.any():
            await self._count_missed(rows.take(stored), token)
        return rows.take(~stored)

    async def _stored(self, rows: Table, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """A few rows tell of all. Where they disagree, the earlier try was cut into halves: so is the look."""
        half = rows.num_rows // 2
        places = sorted({0, half, rows.num_rows - 1})
        found = [await self._number(_STORED, _key(rows, place, int(times[place]))) > 0 for place in places]
        if len(set(found)) == 1:
            return np.full(rows.num_rows, found[0])
        left = await self._stored(rows.take(slice(half)), times[:half])
        return np.concatenate([left, await self._stored(rows.take(slice(half, None)), times[half:])])

    async def _count_missed(self, rows: Table, token: str) -> None:
        """The rollup is fed right after the table: a crash between the two is made good here."""
        key = _key(rows, 0)
        num_points = await self._number(_NUM_POINTS, key)
        if await self._number(_NUM_COUNTED, key) < num_points:
            _log.warning("%d points of an interrupted insert were not counted and are now", rows.num_rows)
            await self._store.insert("rollup_missed", rows, token=f"{token}:missed")

    def _set_aside(self, table: str, rows: Table, error: StrataError) -> None:
        (first,) = rows.take(slice(1)).to_rows()
        told = ("run_id", "metric", "id", "step", "event_time")
        names = [f"{name} {first[name]}" for name in told if first.get(name)]
        more = f" and {rows.num_rows - 1} more" if rows.num_rows > 1 else ""
        self._aside.note(_PART, f"a row of {table} ({', '.join(names)}){more}", error.message, count=rows.num_rows)
        self._keep(table, rows)

    def _keep(self, table: str, rows: Table) -> None:
        """For a person to look at; a full disk or a full file only costs this copy."""
        try:
            with self._file.open("a") as file:
                if file.tell() < _MAX_FILE_BYTES:
                    kept = [{"table": table, **row} for row in rows.to_rows()]
                    file.writelines(json.dumps(row, default=str) + "\n" for row in kept)
        except OSError as error:
            _log.warning("refused rows are not kept in %s: %s", self._file, error.strerror)

    async def _has_row(self, table: str, row_id: str) -> bool:
        sql = f"SELECT count() AS n FROM {{db}}.{table} WHERE id = {{id:String}}"  # noqa: S608 - a name of ours
        return await self._number(sql, {"id": row_id}) > 0

    async def _number(self, sql: str, parameters: dict[str, Any]) -> int:
        return int((await self._store.query(sql, parameters))["n"][0])


def _key(rows: Table, place: int, time_ms: int = 0) -> dict[str, Any]:
    (row,) = rows.take(slice(place, place + 1)).to_rows()
    return {name: row[name] for name in ("run_id", "metric", "host", "rank", "device", "step")} | {"time": time_ms}
