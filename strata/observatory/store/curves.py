"""Series as buckets, by the cheapest road: numbers alone where there is one series, points that are folded here where
they fit into memory, else the engine's window functions. All give the same buckets. Runs inside the store process, so
that single points never leave it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from strata.observatory.store.engine import Engine
from strata.observatory.store.fold import fold
from strata.observatory.store.native import decode
from strata.observatory.store.sql import curves, points_of, rolled_up
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table
from strata.types.shown import MARK

__all__ = ["MAX_FOLDED", "read_buckets"]

# More points than this are left to the engine: 2 M of many series have 90 MB as columns.
MAX_FOLDED = 2_000_000
_PINNED = ("host", "rank", "device")
_NUMBERS = {"step": np.int64, "ms": np.int64, "value": np.float64}


def read_buckets(
    engine: Engine, database: str, where: Mapping[str, Any], buckets: int, which: Which, max_folded: int = MAX_FOLDED
) -> Table:
    """What `sql.curves` asks for."""

    def ask(question: tuple[str, dict[str, Any]]) -> Iterator[bytes]:
        return engine.pieces(question[0].replace("{db}", database), question[1])

    series = decode(*ask(rolled_up(where))).to_rows()
    if sum(row["points"] for row in series) > max_folded:
        return decode(*ask(curves(where, buckets, which)))
    if len(series) != 1 or which == "superseded" or series[0]["host"].startswith(MARK):  # then it is not its name
        return fold(decode(*ask(points_of(where, which))), buckets)
    # Names and places would be most of the answer, and all the same.
    (only,) = series
    expected = only.pop("points")
    points = ask(points_of({**where, **{name: only[name] for name in _PINNED}}, which, numbers_only=True))
    return fold(_joined(points, expected), buckets, only)


def _joined(pieces: Iterable[bytes], expected: int) -> Table:
    """Every number is written once, to where it stays: memory that nobody has touched yet costs more than a copy."""
    columns = {name: np.empty(expected, dtype) for name, dtype in _NUMBERS.items()}
    count = 0
    for block in map(decode, pieces):
        start, count = count, count + block.num_rows
        for name, room in columns.items():
            if count > len(room):  # points came in since they were counted
                room.resize(2 * count, refcheck=False)
            room[start:count] = block[name].to_numpy()
    return Table.of({name: room[:count] for name, room in columns.items()})
