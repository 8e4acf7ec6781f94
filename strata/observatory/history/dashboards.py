"""Saved dashboards: rows of the store, where every observatory and every browser reads the same ones. Each save is a
new version and names the one that it replaces, so that nobody overwrites what they have not seen (docs/adr/0031).
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

from strata.clock import Clock
from strata.errors import InvalidArgument, NotFound, Outdated, Refused, StoreUnavailable, StrataError
from strata.observatory.answers.dashboards import DashboardHead, Layout, SavedDashboard
from strata.observatory.records.encoding import encode, encoded
from strata.observatory.store.base import Store, own_rows
from strata.observatory.store.sql import DASHBOARD, DASHBOARDS
from strata.observatory.store.table import TIME, Column, Table
from strata.types.labels import check_label
from strata.types.names import check_name

__all__ = ["ANY", "DashboardBook"]

ANY = -1
"""As the expected version: whichever there is."""

_MAX_BYTES = 256 << 10
_MAX_DASHBOARDS = 1_000


class DashboardBook:
    """Asks the store each time: there are few, and another observatory may have written meanwhile."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._writing = asyncio.Lock()

    async def list(self, project: str | None = None) -> list[DashboardHead]:
        """By name; of one project, or of all."""
        rows = await own_rows(self._store, DASHBOARDS)
        return [
            DashboardHead(**{name: row[name] for name in DashboardHead.__slots__})
            for row in rows
            if project is None or row["project"] == project
        ]

    async def get(self, dashboard_id: str) -> SavedDashboard:
        row = await self._row(dashboard_id)
        if row is None or row["deleted"]:
            raise NotFound(
                f"there is no dashboard {dashboard_id[:80]!r}",
                hint="GET /api/dashboards lists them; it may be deleted.",
            )
        return _dashboard(row)

    async def put(self, wanted: SavedDashboard, expected: int | None) -> SavedDashboard:
        """Saves it as the next version of its id. `expected` is the version that the writer has seen, None for a new
        one; raises Outdated when there is another one. What `wanted` says of version and time is not used."""
        check_name("dashboard", wanted.id)
        _check_ids(wanted.layout)
        body = encode(wanted.layout)
        if len(body) > _MAX_BYTES:
            raise InvalidArgument(
                f"the dashboard has {len(body):,} bytes, at most {_MAX_BYTES:,} are kept", hint="Split it in two."
            )
        said = {"project": check_label("project", wanted.project), "name": check_label("name", wanted.name)}
        if not said["name"]:
            raise InvalidArgument("a dashboard needs a name")
        async with self._writing:
            row = await self._row(wanted.id)
            _check_seen(wanted.id, row, expected)
            if expected is None and len(await self.list()) >= _MAX_DASHBOARDS:
                raise Refused(f"there are {_MAX_DASHBOARDS:,} dashboards, which is the most", hint="Delete some.")
            version = 1 + (row["version"] if row else 0)
            count = sum(len(section.panels) for section in wanted.layout.sections)
            new = {**said, "id": wanted.id, "version": version, "author": wanted.author, "num_panels": count}
            return _dashboard(await self._record({**new, "body": body.decode(), "deleted": 0}))

    async def delete(self, dashboard_id: str, expected: int | None, author: str) -> None:
        async with self._writing:
            row = await self._row(dashboard_id)
            if row is None or row["deleted"]:
                raise NotFound(f"there is no dashboard {dashboard_id[:80]!r}", hint="GET /api/dashboards lists them.")
            _check_seen(dashboard_id, row, expected)
            gone = {"version": row["version"] + 1, "author": author, "deleted": 1, "body": "{}", "num_panels": 0}
            await self._record({**row, **gone})

    async def _row(self, dashboard_id: str) -> dict[str, Any] | None:
        rows = await own_rows(self._store, DASHBOARD, {"id": dashboard_id})
        return rows[0] if rows else None

    async def _record(self, row: Mapping[str, Any]) -> dict[str, Any]:
        now_ms = round(self._clock.wall() * 1000)
        kinds = dict.fromkeys(("id", "project", "name", "author", "body"), "String")
        kinds |= {"version": "UInt64", "num_panels": "UInt32", "deleted": "UInt8", "event_time": TIME}
        said = {**row, "event_time": now_ms}
        rows = Table({name: Column(kind, [said[name]]) for name, kind in kinds.items()})
        try:
            await self._store.insert("dashboards", rows, token=uuid.uuid4().hex)
        except StoreUnavailable:
            raise
        except StrataError as error:
            raise Refused(f"the metric store does not keep dashboards: {error.message}") from None
        return {**row, "updated_at_ms": now_ms}


def _dashboard(row: Mapping[str, Any]) -> SavedDashboard:
    """The layout as it was checked when it was saved: bytes that are JSON already."""
    said = {name: row[name] for name in ("id", "project", "name", "version", "author", "updated_at_ms")}
    return SavedDashboard(**said, layout=cast("Layout", encoded(row["body"].encode())))


def _check_ids(layout: Layout) -> None:
    ids = Counter(panel.id for section in layout.sections for panel in section.panels)
    twice = next((one for one, count in ids.items() if count > 1), None)
    if twice is not None:
        raise InvalidArgument(f"two panels have the id {twice!r}", hint="Each panel needs an id of its own.")


def _check_seen(dashboard_id: str, row: Mapping[str, Any] | None, expected: int | None) -> None:
    there = None if row is None or row["deleted"] else row["version"]
    if expected == there or (expected == ANY and there is not None):
        return
    if row is None or there is None:
        raise Outdated(f"dashboard {dashboard_id!r} is not there any more", hint="Save it under another name.")
    if expected is None:
        raise Outdated(
            f"dashboard {dashboard_id!r} is there already, in version {there}",
            hint="Read it, and send its version in If-Match to replace it.",
        )
    raise Outdated(
        f"dashboard {dashboard_id!r} was changed since version {expected}: {row['author']} saved version {there}",
        hint="Load the newer one, or save yours under another name.",
    )
