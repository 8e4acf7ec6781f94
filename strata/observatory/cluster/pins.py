"""What only a checkpoint's own store knows: which ones are kept whatever retention says, and which are gone, because
somebody deleted them by hand. A pin is an object there, as `strata checkpoints pin` writes it; here it is only read and
shown, or written when somebody asks for it.
"""

import asyncio
from collections import OrderedDict

from strata.checkpoint.catalog import Catalog
from strata.checkpoint.layout import parse_step
from strata.clock import Clock
from strata.errors import CheckpointNotFound, Conflict
from strata.observatory.background.part import Part
from strata.observatory.cluster.followed import root_of
from strata.observatory.cluster.published import PublishedCluster
from strata.storage.uri import open_store
from strata.types.checkpoints import CheckpointStatus

__all__ = ["PinBook"]

_LOOK_S = 1.0
_AGAIN_S = 30.0
_MAX_ROOTS = 50


class PinBook(Part):
    """One task that reads the pins of the newest stores, a new one at once and each again every 30 s: the command line
    and training scripts pin, too. Stores are slow and may hang, so none is ever touched on the loop."""

    def __init__(self, published: PublishedCluster, clock: Clock) -> None:
        self._published = published
        self._clock = clock
        self._catalogs: OrderedDict[str, Catalog] = OrderedDict()
        self._read_at: dict[str, float] = {}

    async def set(self, checkpoint_id: str, *, pinned: bool) -> None:
        """Durable on return. Only what is complete can be pinned."""
        record = self._published.followed.records.checkpoints.records.get(checkpoint_id)
        if record is None:
            raise CheckpointNotFound(f"no checkpoint {checkpoint_id[:80]!r} is known")
        if not self._published.followed.is_complete(record):
            removed = CheckpointStatus.REMOVED if record.status is CheckpointStatus.COMPLETED else record.status
            status = removed.replace("_", " ")
            raise Conflict(f"checkpoint {checkpoint_id} is {status}", hint="Only a completed one can be pinned.")
        root, step = root_of(record.path), record.step
        catalog = self._catalog(root)
        await asyncio.to_thread(catalog.pin if pinned else catalog.unpin, step)
        await self._read(root)

    async def _run(self) -> None:
        while True:
            for root in self._due():
                with self._published.aside.guard("pins", root):
                    await self._read(root)
                    self._published.aside.clear("pins", root)
                    continue
                self._published.followed.set_store(root, None)
            await asyncio.sleep(_LOOK_S)

    def _due(self) -> list[str]:
        now = self._clock.monotonic()
        known = self._published.followed.records.checkpoints.records
        newest = OrderedDict.fromkeys(root_of(one.path) for one in reversed(known.values()))
        return [root for root in list(newest)[:_MAX_ROOTS] if now - self._read_at.get(root, -_AGAIN_S) >= _AGAIN_S]

    async def _read(self, root: str) -> None:
        self._read_at[root] = self._clock.monotonic()
        expected = self._completed_in(root)  # before the store is read: whatever is complete by now must be in it
        pins, steps = await asyncio.to_thread(_look, self._catalog(root))
        gone = frozenset(name for name, step in expected.items() if step not in steps) if steps else frozenset()
        self._published.followed.set_store(root, pins, gone)

    def _completed_in(self, root: str) -> dict[str, int]:
        """Ids and steps of what was saved there in our own layout."""
        return {
            one.id: one.step
            for one in self._published.followed.records.checkpoints.records.values()
            if one.status is CheckpointStatus.COMPLETED and _is_ours(root, one.path, one.step)
        }

    def _catalog(self, root: str) -> Catalog:
        if root not in self._catalogs:
            self._catalogs[root] = Catalog(open_store(root), self._clock)
            while len(self._catalogs) > _MAX_ROOTS:
                self._read_at.pop(self._catalogs.popitem(last=False)[0], None)
        return self._catalogs[root]


def _is_ours(root: str, path: str, step: int) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == root and parse_step(name) == step


def _look(catalog: Catalog) -> tuple[frozenset[int] | None, frozenset[int]]:
    """Pins and steps; no pins are known when there is nothing at all: the folder is on another host, or gone."""
    pins, steps = catalog.pins(), frozenset(catalog.steps())
    return (pins if pins or steps else None), steps
