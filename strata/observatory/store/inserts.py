"""Rows on their way into the store: whole, or, where the store refuses them, halved until what it refuses is alone.

What is refused for good is kept in a file beside the spool and set aside; the rest of its group arrives.
"""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from strata.errors import Busy, InvalidArgument, StoreUnavailable, StrataError
from strata.observatory.background.setaside import SetAside
from strata.observatory.store.base import Store

__all__ = ["Inserts", "Sent"]

_log = logging.getLogger(__name__)
# A store that refuses this much of one group refuses in pieces: looking for each single row would take minutes.
_MAX_SINGLES = 200
# So many refusals and nothing let in: the store is at fault, not a row.
_ENOUGH = 16
_MAX_FILE_BYTES = 64 << 20
_PART = "metric store"

_COUNT_POINT = """
SELECT count() AS n FROM {db}.metric_points WHERE run_id = {run_id:String} AND metric = {metric:String}
AND host = {host:String} AND rank = {rank:UInt32} AND device = {device:UInt16} AND step = {step:UInt64}
AND toUnixTimestamp64Milli(event_time) = {time:Int64}
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """Rows that the store took under one token."""

    table: str
    rows: pa.Table
    token: str


@dataclass(slots=True)
class _Sorting:
    """One group of rows while it is being told apart; `stubborn`: whatever the reason of a refusal is."""

    table: str
    stubborn: bool
    sent: list[Sent] = field(default_factory=list)
    refused: list[tuple[pa.Table, StrataError]] = field(default_factory=list)

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

    async def send(self, table: str, rows: pa.Table, token: str, *, stubborn: bool) -> list[Sent]:
        """What arrived. Raises when the store is away, or refuses for a reason that may pass; `stubborn` is for a
        group that was refused again and again: then a refusal counts as final as long as other rows are let in."""
        sorting = _Sorting(table, stubborn)
        await self._try(sorting, rows, token)
        unsure = [error for _, error in sorting.refused if not isinstance(error, InvalidArgument)]
        if unsure and not sorting.sent:
            raise unsure[0]
        for refused, error in sorting.refused:
            self._set_aside(table, refused, error)
        return sorting.sent

    async def verify(self, sent: Sent) -> None:
        """After a crash: rows of one insert and one month arrive together or not at all, so one row of each tells."""
        if sent.table == "metric_points":
            await self._verify_points(sent)
        elif "id" in sent.rows.column_names and not await self._has_row(sent.table, sent.rows["id"][0].as_py()):
            await self._store.insert(sent.table, sent.rows, token=f"{sent.token}:again")

    async def _try(self, sorting: _Sorting, rows: pa.Table, token: str) -> None:
        try:
            await self._store.insert(sorting.table, rows, token=token)
        except StoreUnavailable:
            raise
        except StrataError as error:
            if not sorting.may_be_final(error):
                raise
            if rows.num_rows == 1 or len(sorting.refused) >= _MAX_SINGLES:
                sorting.refused.append((rows, error))
                return
            half = rows.num_rows // 2
            await self._try(sorting, rows.slice(0, half), f"{token}:0")
            await self._try(sorting, rows.slice(half), f"{token}:1")
        else:
            sorting.sent.append(Sent(sorting.table, rows, token))

    def _set_aside(self, table: str, rows: pa.Table, error: StrataError) -> None:
        first = rows.slice(0, 1).to_pylist()[0]
        told = ("run_id", "metric", "id", "step", "event_time")
        names = [f"{name} {first[name]}" for name in told if first.get(name)]
        more = f" and {rows.num_rows - 1} more" if rows.num_rows > 1 else ""
        self._aside.note(_PART, f"a row of {table} ({', '.join(names)}){more}", error.message, count=rows.num_rows)
        self._keep(table, rows)

    def _keep(self, table: str, rows: pa.Table) -> None:
        """For a person to look at; a full disk or a full file only costs this copy."""
        try:
            with self._file.open("a") as file:
                if file.tell() < _MAX_FILE_BYTES:
                    file.writelines(_line(table, row) for row in rows.to_pylist())
        except OSError as error:
            _log.warning("refused rows are not kept in %s: %s", self._file, error.strerror)

    async def _verify_points(self, sent: Sent) -> None:
        times = sent.rows["event_time"].cast(pa.int64()).to_numpy()
        months = times.astype("datetime64[ms]").astype("datetime64[M]").astype(np.int64)
        for month in np.unique(months):
            chosen = months == month
            first = int(np.flatnonzero(chosen)[0])
            if await self._stored_copies(sent.rows.slice(first, 1).to_pylist()[0], int(times[first])) == 0:
                _log.warning("%d points of an interrupted insert were missing and are added", int(chosen.sum()))
                await self._store.insert(
                    sent.table, sent.rows.filter(pa.array(chosen)), token=f"{sent.token}:{month}:again"
                )

    async def _has_row(self, table: str, row_id: str) -> bool:
        sql = f"SELECT count() AS n FROM {{db}}.{table} WHERE id = {{id:String}}"  # noqa: S608 - a name of ours
        found = await self._store.query(sql, {"id": row_id})
        return int(found["n"][0].as_py()) > 0

    async def _stored_copies(self, row: dict[str, Any], time_ms: int) -> int:
        key = {name: row[name] for name in ("run_id", "metric", "host", "rank", "device", "step")}
        found = await self._store.query(_COUNT_POINT, {**key, "time": time_ms})
        return int(found["n"][0].as_py())


def _line(table: str, row: dict[str, Any]) -> str:
    return json.dumps({"table": table, **row}, default=str) + "\n"
