"""The committed position in a dataset. It moves when a checkpoint commits, never when something is read.

Synchronous jobs need one integer. Queue mode, for workers of uneven speed, keeps a bitmap of finished shards and a
row for each open one. Both are plain JSON and hold no topology: any world size can go on from them.
"""

import base64
import zlib
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.errors import Fenced, InvalidArgument, Refused

__all__ = ["QueueCursor", "SyncCursor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncCursor:
    """`position` samples of `epoch` are in the committed model, in the order that `digest` names."""

    digest: str
    seed: int
    epoch: int = 0
    position: int = 0

    def __post_init__(self) -> None:
        for name, value in (("epoch", self.epoch), ("position", self.position)):
            if value < 0:
                raise InvalidArgument(f"{name} of a cursor cannot be negative: {value}")

    def to_dict(self) -> dict[str, str | int]:
        return {"kind": "sync", **asdict(self)}

    @classmethod
    def from_dict(cls, state: Any) -> "SyncCursor":
        if not isinstance(state, Mapping):
            raise InvalidArgument(f"the state of a loader is a dict, as state_dict() gives it, and not {state!r:.80}")
        if state.get("kind") != "sync":
            raise InvalidArgument(f"not the state of a synchronous loader: kind is {state.get('kind')!r}")
        try:
            digest = str(state["digest"])
            return cls(digest=digest, **{name: int(state[name]) for name in ("seed", "epoch", "position")})
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(f"the state of the loader is incomplete: {error!r}") from error

    def check(self, digest: str) -> None:
        """Refuses to go on in another order, because samples would be lost or doubled silently."""
        if digest != self.digest:
            raise Refused(
                f"the saved position belongs to order {self.digest}, this loader reads order {digest}",
                hint="Data files, seed, shuffle, lanes or window differ from the run that saved it: restore them.",
            )


class QueueCursor:
    """Shards taken by whoever is free. Each row of each shard is committed exactly once, whoever dies in between.

    A claim is a lease, not progress: only `commit` counts. A released shard starts again from its committed row.
    """

    def __init__(self, sizes: NDArray[np.int64], epoch: int = 0) -> None:
        self.epoch = epoch
        self.sizes = sizes
        self._set_done(np.asarray(sizes) == 0)
        self._rows: dict[int, int] = {}
        self.holders: dict[int, str] = {}  # of open shards
        self._next = 0

    def _set_done(self, done: NDArray[np.bool_]) -> None:
        """Marks a shard as done and counts it, so that asking for the progress of a million shards costs nothing."""
        self._done = done
        self._rows_done = int(self.sizes[done].sum())
        self._num_left = len(done) - int(np.count_nonzero(done))

    @property
    def num_committed(self) -> int:
        return self._rows_done + sum(self._rows.values())

    @property
    def finished(self) -> bool:
        return self._num_left == 0

    @property
    def begun(self) -> NDArray[np.bool_]:
        """By shard: whether at least one of its rows is committed."""
        begun = self._done.copy()
        begun[[shard for shard, row in self._rows.items() if row]] = True
        return begun

    def row(self, shard: int) -> int:
        """How many rows of a shard are committed."""
        return int(self.sizes[shard]) if self._done[shard] else self._rows.get(shard, 0)

    def free(self, blocked: Container[int] = ()) -> int | None:
        """The next shard that nobody holds, or None; released ones come first."""
        for shard in sorted(self._rows):
            if shard not in self.holders and shard not in blocked:
                return shard
        while self._next < len(self._done):
            if not self._done[self._next] and self._next not in self._rows:
                return self._next
            self._next += 1
        return None

    def take(self, worker: str, shard: int) -> int:
        """Lends a free shard; the row to start from."""
        self.holders[shard] = worker
        return self._rows.setdefault(shard, 0)

    def claim(self, worker: str) -> tuple[int, int] | None:
        """(shard, row to start from) for a worker, or None when no shard is free."""
        shard = self.free()
        return None if shard is None else (shard, self.take(worker, shard))

    def commit(self, worker: str, shard: int, row: int) -> None:
        """Rows of `shard` before `row` are in the committed model. Only the holder may say so, and never go back."""
        holder = self.holders.get(shard)
        if holder != worker:
            raise Fenced(f"worker {worker!r} does not hold shard {shard}: {holder or 'nobody'} does")
        if not self._rows[shard] <= row <= int(self.sizes[shard]):
            raise InvalidArgument(f"row {row} of shard {shard} is outside {self._rows[shard]}…{int(self.sizes[shard])}")
        self.settle(shard, row)

    def settle(self, shard: int, row: int) -> None:
        """Moves the committed row, whoever holds the shard; never back."""
        if self._done[shard] or row < self._rows.get(shard, 0):
            return
        self._rows[shard] = row
        if row == int(self.sizes[shard]):
            self._done[shard] = True
            self._rows_done += row
            self._num_left -= 1
            del self._rows[shard]
            self.holders.pop(shard, None)

    def drop(self, shard: int) -> None:
        """Takes one shard back from its holder."""
        self.holders.pop(shard, None)

    def release(self, worker: str) -> list[int]:
        """Takes back what a dead or leaving worker held."""
        held = sorted(shard for shard, holder in self.holders.items() if holder == worker)
        for shard in held:
            del self.holders[shard]
        return held

    def to_dict(self) -> dict[str, Any]:
        """Committed state only: claims are not in it, so after a restart every open shard is free again."""
        bitmap = zlib.compress(np.packbits(self._done).tobytes(), 6)
        return {
            "kind": "queue",
            "epoch": self.epoch,
            "num_shards": len(self._done),
            "done": base64.b64encode(bitmap).decode(),
            "open": {str(shard): row for shard, row in sorted(self._rows.items()) if row},
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], sizes: NDArray[np.int64]) -> "QueueCursor":
        if state.get("kind") != "queue" or state.get("num_shards") != len(sizes):
            raise InvalidArgument(
                f"not the state of a queue over {len(sizes)} shards: "
                f"kind {state.get('kind')!r}, shards {state.get('num_shards')!r}"
            )
        cursor = cls(sizes, int(state["epoch"]))
        bits = np.frombuffer(zlib.decompress(base64.b64decode(state["done"])), dtype=np.uint8)
        cursor._set_done(np.unpackbits(bits, count=len(sizes)).astype(bool))
        cursor._rows = {int(shard): int(row) for shard, row in state["open"].items()}
        opened = np.zeros(len(sizes), dtype=bool)
        opened[list(cursor._rows)] = True
        cursor._next = int(np.argmax(~cursor._done & ~opened)) if not (cursor._done | opened).all() else len(sizes)
        return cursor
