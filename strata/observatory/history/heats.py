"""The pictures that somebody looks at: made of what the store holds when one is first asked for, then fed live, and
forgotten a minute after the last look.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strata.clock import Clock
from strata.errors import StoreUnavailable
from strata.observatory.answers.heat import Heat, HeatMetric
from strata.observatory.live.attempts import Begun
from strata.observatory.live.heat import HeatPicture
from strata.observatory.live.view import LiveView, NewPoints
from strata.observatory.records.fill import fill
from strata.observatory.store.base import Store
from strata.observatory.store.sql import newest_steps
from strata.observatory.store.superseded import Which

__all__ = ["HeatBook"]

_KEPT_S = 60.0
_MOST = 16
_PREFERRED = "step_time"


@dataclass(slots=True)
class _Open:
    group: int
    picture: HeatPicture
    asked_at: float


class HeatBook:
    """On the loop; while nobody looks, a tick costs nothing."""

    def __init__(self, live: LiveView, store: Store, clock: Clock, settle: Callable[[str], Awaitable[None]]) -> None:
        self._live = live
        self._store = store
        self._clock = clock
        self._settle = settle
        self._open: OrderedDict[tuple[str, str], _Open] = OrderedDict()
        live.observers.append(self._on_points)
        live.on_superseded.append(self._on_superseded)

    async def heat(self, run_id: str, metric: str, *, rows: int, ranks: tuple[int, int], seen: tuple[str, int]) -> Heat:
        """`metric` empty: one that tells who is slow, if there is one. `seen`: the picture and version that the asker
        has."""
        self._live.tick()  # who has just sent points finds them
        counts = self._live.series.num_ranks(run_id)
        metrics = [HeatMetric(metric=name, num_ranks=number) for name, number in sorted(counts.items()) if number > 1]
        names = [one.metric for one in metrics]
        chosen = metric if metric in names else next((one for one in names if one.startswith(_PREFERRED)), None)
        chosen = chosen or (names[0] if names else None)
        picture = HeatPicture(0) if chosen is None else await self._picture(run_id, chosen)
        cut = picture.rows(rows, *ranks)
        told = {"run_id": run_id, "metric": chosen, "metrics": metrics, "picture": picture.id, "steps": picture.steps()}
        columns = picture.columns(cut, seen[1] if seen[0] == picture.id else -1)
        return fill(Heat, picture, cut, **told, columns=columns)

    async def _picture(self, run_id: str, metric: str) -> HeatPicture:
        now, key = self._clock.monotonic(), (run_id, metric)
        self._forget(now)
        known = self._open.get(key)
        if known is None:
            series = self._live.series
            picture = HeatPicture(series.num_ranks(run_id)[metric])
            known = self._open[key] = _Open(series.group(run_id, metric), picture, now)
            await self._load(run_id, metric, picture)
        known.asked_at = now
        self._open.move_to_end(key)
        return known.picture

    def _forget(self, now: float) -> None:
        for key, one in list(self._open.items()):
            if now - one.asked_at > _KEPT_S or len(self._open) > _MOST:
                del self._open[key]

    async def _load(self, run_id: str, metric: str, picture: HeatPicture) -> None:
        """Without a store the picture begins with what comes now."""
        which: Which = "newest" if self._live.attempts.is_fenced(run_id) else "all"
        try:
            await self._settle(run_id)  # what came just before must be in the store, for no tick brings it again
            found = await self._store.query(*newest_steps(run_id, metric, picture.max_steps, which))
        except StoreUnavailable:
            return
        if found.num_rows:
            steps, values = (found[name].to_numpy() for name in ("step", "value"))
            picture.put(found["rank"].to_list(), steps.astype(np.int64), values.astype(np.float64), over=False)

    def _on_points(self, points: NewPoints) -> None:
        if not self._open:
            return
        self._forget(self._clock.monotonic())
        groups = self._live.series.groups(points.numbers)
        for one in self._open.values():
            mine = points.take(np.flatnonzero(groups == one.group))
            if len(mine):
                one.picture.put(self._live.series.ranks(mine.numbers).tolist(), mine.steps, mine.values)

    def _on_superseded(self, begun: Sequence[Begun]) -> None:
        """Steps that are done again leave the picture, until they are."""
        for one in begun:
            groups = set(self._live.series.groups(np.array(one.numbers, np.int64)).tolist())
            for known in self._open.values():
                if known.group in groups:
                    known.picture.cut(one.step)
