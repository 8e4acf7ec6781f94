"""What the ranks of the goodput job wrote down, step by step, and the figures that follow from it. Pure, but for the
one function that reads the file. Standard library only: it runs in every peer's virtualenv.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ledger", "Line", "Samples", "read", "share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One rank has finished one step. `entered` holds, for each rank, the step whose samples it has put into the sum of
    gradients (0: it put in nothing); `total` is the sum of all that have entered the state so far."""

    began: float
    ended: float
    rank: int
    step: int
    entered: tuple[int, ...]
    total: int

    def __str__(self) -> str:
        entered = ",".join(map(str, self.entered))
        return f"step {self.began:.6f} {self.ended:.6f} {self.rank} {self.step} {entered} {self.total}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Against the sequence of an uninterrupted run, in shares of a global batch: one rank's samples of one step."""

    lost: int
    doubled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All lines in the order of their end, and the newest process of each rank."""

    lines: tuple[Line, ...]
    pids: dict[int, int]

    @property
    def last(self) -> int:
        """The last step that was finished."""
        return self.lines[-1].step if self.lines else 0

    def position(self, moment: float) -> int:
        """How many steps were in the state at that moment and not undone by what had happened before it: the first
        step that began later is the one after them."""
        later = min((line for line in self.lines if line.began >= moment), key=lambda line: line.began)
        return later.step - 1

    def pace(self, *spans: tuple[float, float]) -> float:
        """Useful steps per second in these spans of time: steps that were undone within them do not count."""
        steps = sum(self.position(end) - self.position(start) for start, end in spans)
        return steps / sum(end - start for start, end in spans)

    def cost(self, moment: float, around_s: float) -> float:
        """Seconds that a kill at this moment has cost: what is missing in the time after it, at the pace of as long a
        time before it."""
        before = self.pace((moment - around_s, moment))
        return around_s - (self.position(moment + around_s) - self.position(moment)) / before

    def next_step(self, moment: float) -> float | None:
        """Seconds until the end of the first step that began after the moment; None when none has."""
        return min((line.ended - moment for line in self.lines if line.began >= moment), default=None)

    def redone(self) -> int:
        """How often a step was finished that had been finished before: the work that was undone."""
        again = 0
        ended: dict[int, float] = {}  # when a rank had first finished the step, as it was done last
        for line in sorted(self.lines, key=lambda line: line.began):
            if line.began >= ended.get(line.step, line.ended):
                again += 1
                ended[line.step] = line.ended
            ended[line.step] = min(line.ended, ended.get(line.step, line.ended))
        return again

    def samples(self) -> Samples:
        """What is in the final state. A step that was done again is in it as it was done last. Raises when the state
        itself counts otherwise than the ledger."""
        final = {line.step: line for line in self.lines if line.step <= self.last}
        entered = Counter((rank, step) for line in final.values() for rank, step in enumerate(line.entered) if step)
        ranks = max(len(line.entered) for line in self.lines)
        expected = {(rank, step) for rank in range(ranks) for step in range(1, self.last + 1)}
        total = sum(step * count for (_, step), count in entered.items())
        if total != self.lines[-1].total:
            raise ValueError(
                f"the ledger adds up to {total}, the state after step {self.last} to {self.lines[-1].total}"
            )
        return Samples(lost=len(expected - entered.keys()), doubled=sum(entered.values()) - len(entered))


def read(path: Path) -> Ledger:
    lines, pids = [], {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        kind, *words = text.split()
        if kind == "rank":
            pids[int(words[0])] = int(words[1])
        else:
            began, ended, rank, step, entered, total = words
            lines.append(
                Line(
                    began=float(began),
                    ended=float(ended),
                    rank=int(rank),
                    step=int(step),
                    entered=tuple(map(int, entered.split(","))),
                    total=int(total),
                )
            )
    return Ledger(lines=tuple(sorted(lines, key=lambda line: line.ended)), pids=pids)


def share(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of all are not above (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-round(part * 1000) * len(ordered) // 1000) - 1)]
