"""Which attempt a step belongs to: the one place that decides. A record says that an attempt began at a step: of a
whole run (the coordinator's word: the checkpoint that it went back to), or of one metric of one rank (its first point).
What an earlier attempt measured at that step or later is superseded: shown by no chart, and kept. What it measured
there after the newer one had begun comes from a process that should be dead: it is refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from strata.observatory.answers.runs import AttemptBegan
from strata.observatory.batch.columns import Columns
from strata.observatory.live.series import SeriesTable, Track, track_of
from strata.protocol.generated.telemetry_pb2 import AttemptStart, LogLine
from strata.types.metrics import MAX_STEP, WORLDS, SeriesKey

__all__ = ["AttemptBook", "Begun", "Verdict"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_UNKNOWN = MAX_STEP + 1  # nobody knows yet at which step it began


class _Start(NamedTuple):
    step: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a batch: the rows of points to refuse, and the attempts that begin with it."""

    refused: Ints
    starts: list[AttemptStart] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Begun:
    """These series have superseded points from this step on."""

    numbers: list[int]
    step: int


class AttemptBook:
    """Knows every start, from the store and from what came in since. Points without an attempt are nobody's to
    supersede. A batch of the newest attempt costs one comparison of its heads."""

    def __init__(self, series: SeriesTable) -> None:
        self._series = series
        self._runs: dict[str, dict[int, _Start]] = {}
        self._tracks: dict[Track, dict[int, _Start]] = {}
        self._fenced: set[str] = set()
        # By series: the turn that is the newest and of which nothing is left to decide.
        self._settled: Ints = np.zeros(1024, np.int64)

    def is_fenced(self, run_id: str) -> bool:
        """Whether some of the run's points may be superseded."""
        return run_id in self._fenced

    @property
    def fenced_runs(self) -> list[str]:
        return sorted(self._fenced)

    def has(self, run_id: str, turn: int) -> bool:
        """Whether it is known that this turn of the whole run began."""
        return turn in self._runs.get(run_id, {})

    def of_run(self, run_id: str) -> list[AttemptBegan]:
        """The attempts of the whole run, in their order."""
        return [
            AttemptBegan(attempt=turn // WORLDS, step=start.step if start.step < _UNKNOWN else None, at_ms=start.at_ms)
            for turn, start in sorted(self._runs.get(run_id, {}).items())
        ]

    def judge(self, columns: Columns) -> Verdict | None:
        """None for what nearly every batch is: points of attempts that are known to be the newest. Changes nothing:
        what it finds is valid once it is on disk."""
        odd = self._odd(columns)
        if odd is None:
            return None
        turns, numbers = columns.head_turns, self._series.intern_all(columns.heads)
        assert turns is not None
        refused = np.zeros(columns.num_points, bool)
        for steps, times in self._newer(columns, odd):
            refused |= (columns.steps >= steps[columns.series]) & (columns.times > times[columns.series])
        starts = []
        firsts = _first_points(columns)
        for place in odd.tolist():
            start = self._start_of(columns.heads[place].key, int(turns[place]), firsts.get(place))
            if start is not None:
                starts.append(start)
            elif not any(self._starts_after(columns.heads[place].key, int(turns[place]))):
                self._settled[numbers[place]] = turns[place]
        return Verdict(np.flatnonzero(refused), starts)

    def hidden(self, columns: Columns) -> Bools | None:
        """Which of its points are superseded already; None when none is."""
        odd = self._odd(columns)
        if odd is None:
            return None
        hidden = np.zeros(columns.num_points, bool)
        for steps, _ in self._newer(columns, odd):
            hidden |= columns.steps >= steps[columns.series]
        return hidden if hidden.any() else None

    def is_late(self, line: LogLine) -> bool:
        """Whether a process of an attempt wrote this line after a newer attempt had begun. What a rank prints has the
        time at which its agent read it, and may be its last words: only what it logged itself has its own time."""
        if not line.attempt or line.stream != "log" or line.source != "worker":
            return False
        starts = self._runs.get(line.task_id, {})
        return any(turn // WORLDS > line.attempt and start.at_ms < line.event_time_ms for turn, start in starts.items())

    def begin(self, starts: Iterable[AttemptStart]) -> list[Begun]:
        """Notes what is on disk now; a start that is known changes nothing."""
        begun = []
        for start in starts:
            step = min(start.step, _UNKNOWN) if start.HasField("step") else _UNKNOWN
            if start.metric:
                track = (start.run_id, start.metric, start.rank, start.device)
                known, numbers = self._tracks.setdefault(track, {}), self._series.of_track(track)
            else:
                known, numbers = self._runs.setdefault(start.run_id, {}), self._series.of_run(start.run_id)
            turn = start.attempt * WORLDS + start.world
            before = known.get(turn, _Start(_UNKNOWN, start.event_time_ms))
            known[turn] = _Start(min(before.step, step), min(before.at_ms, start.event_time_ms))
            self._unsettle(numbers)
            if step < before.step:
                self._fenced.add(start.run_id)
                begun.append(Begun(numbers, step))
        return begun

    def forget(self, run_id: str) -> None:
        """The run was deleted."""
        self._runs.pop(run_id, None)
        self._fenced.discard(run_id)
        for number in self._series.of_run(run_id):
            self._tracks.pop(track_of(self._series.key(number)), None)

    def _odd(self, columns: Columns) -> Ints | None:
        """The heads of which something is to be decided."""
        turns = columns.head_turns
        if turns is None:
            return None
        numbers = self._series.intern_all(columns.heads)
        self._grow(len(self._series))
        odd = np.flatnonzero((self._settled[numbers] != turns) & (turns > 0))
        return odd if len(odd) else None

    def _newer(self, columns: Columns, odd: Ints) -> Iterator[tuple[Ints, Ints]]:
        """By head, step and time of a start that supersedes it: first the first one of every head, then the second."""
        assert columns.head_turns is not None
        found = {
            place: list(self._starts_after(columns.heads[place].key, int(columns.head_turns[place])))
            for place in odd.tolist()
        }
        for turn in range(max((len(starts) for starts in found.values()), default=0)):
            steps, times = np.full((2, len(columns.heads)), np.iinfo(np.int64).max)
            for place, starts in found.items():
                if turn < len(starts):
                    steps[place], times[place] = starts[turn]
            yield steps, times

    def _starts_after(self, key: SeriesKey, turn: int) -> Iterator[_Start]:
        for starts in (self._runs.get(key.run_id, {}), self._tracks.get(track_of(key), {})):
            yield from (start for number, start in starts.items() if number > turn)

    def _start_of(self, key: SeriesKey, turn: int, first: _Start | None) -> AttemptStart | None:
        """The record to make of a turn's first point: none of the first turn of all, of a known one, or where the whole
        run's record says as much."""
        of_run = self._runs.get(key.run_id, {}).get(turn)
        if first is None or turn <= WORLDS or turn in self._tracks.get(track_of(key), {}):
            return None
        if of_run is not None and of_run.step <= first.step:
            return None
        run_id, metric, _, rank, device = key
        return AttemptStart(
            run_id=run_id,
            metric=metric,
            rank=rank,
            device=device,
            attempt=turn // WORLDS,
            world=turn % WORLDS,
            step=first.step,
            event_time_ms=first.at_ms,
        )

    def _unsettle(self, numbers: list[int]) -> None:
        self._grow(len(self._series))
        self._settled[numbers] = 0

    def _grow(self, size: int) -> None:
        while size > len(self._settled):
            self._settled = np.concatenate([self._settled, np.zeros_like(self._settled)])


def _first_points(columns: Columns) -> dict[int, _Start]:
    """By head, its earliest point: the step and the time."""
    order = np.lexsort((columns.steps, columns.times, columns.series))
    heads, first = np.unique(columns.series[order], return_index=True)
    rows = order[first]
    starts = map(_Start, columns.steps[rows].tolist(), columns.times[rows].tolist())
    return dict(zip(heads.tolist(), starts, strict=True))
