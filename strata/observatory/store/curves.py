"""Series as buckets, by the cheapest road: numbers alone where there is one series, points that are folded here where
they fit into memory, else the engine's window functions. All give the same buckets. Runs inside the store process, so
that single points never leave it.
"""

from collections.abc import Mapping
from typing import Any

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


def read_buckets(
    engine: Engine, database: str, where: Mapping[str, Any], buckets: int, which: Which, max_folded: int = MAX_FOLDED
) -> Table:
    """What `sql.curves` asks for."""

    def ask(question: tuple[str, dict[str, Any]]) -> Table:
        return decode(engine.query(question[0].replace("{db}", database), question[1]))

    series = ask(rolled_up(where)).to_rows()
    if sum(row["points"] for row in series) > max_folded:
        return ask(curves(where, buckets, which))
    if len(series) != 1 or which == "superseded" or series[0]["host"].startswith(MARK):  # then it is not its name
        return fold(ask(points_of(where, which)), buckets)
    # Names and places would be most of the answer, and all the same.
    (only,) = series
    del only["points"]
    points = ask(points_of({**where, **{name: only[name] for name in _PINNED}}, which, numbers_only=True))
    return fold(points, buckets, only)
