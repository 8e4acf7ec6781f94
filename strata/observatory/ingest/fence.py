"""Keeps out what a process of an earlier attempt sends though it should be dead, and notes where attempts begin. What
is refused is counted, and told once per run and attempt.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from strata.observatory.background.setaside import SetAside
from strata.observatory.batch.columns import Columns
from strata.observatory.batch.strip import strip_points
from strata.observatory.live.attempts import AttemptBook
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import WORLDS

__all__ = ["NOTHING", "Fence", "Refused"]

_PART = "earlier attempts"
_WHY = "a newer attempt had begun when it was measured, and does these steps again"
_MAX_TOLD = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What a batch lost at the fence."""

    points: int = 0
    logs: int = 0


NOTHING = Refused()


class Fence:
    """Asks the book of attempts; knows no rule of its own."""

    def __init__(self, book: AttemptBook, aside: SetAside) -> None:
        self._book = book
        self._aside = aside
        self._told: Counter[tuple[str, str, int]] = Counter()  # what it was, whose, and of which attempt

    def sift(self, message: Batch, columns: Columns) -> Refused | None:
        """Takes out of the message what is refused and puts in what begins with it. None when it stays as it is."""
        verdict = self._book.judge(columns)
        late = [place for place, line in enumerate(message.logs) if line.attempt and self._book.is_late(line)]
        if not late and (verdict is None or not (len(verdict.refused) or verdict.starts)):
            return None
        refused = verdict.refused if verdict is not None else np.zeros(0, np.int64)
        if len(refused):
            heads, counts = np.unique(columns.series[refused], return_counts=True)
            for place, count in zip(heads.tolist(), counts.tolist(), strict=True):
                head = columns.heads[place]
                self._told["a point", head.key.run_id, head.turn // WORLDS] += count
            strip_points(message, set(refused.tolist()))
        for place in reversed(late):
            line = message.logs.pop(place)
            self._told["a log line", line.task_id, line.attempt] += 1
        if verdict is not None:
            message.attempts.extend(verdict.starts)
        self._tell()
        return Refused(points=len(refused), logs=len(late))

    def _tell(self) -> None:
        for (what, whose, attempt), count in self._told.items():
            self._aside.note(_PART, f"{what} of attempt {attempt} of {whose}", _WHY, count=count)
        while len(self._told) > _MAX_TOLD:
            del self._told[next(iter(self._told))]
