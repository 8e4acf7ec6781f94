"""Figures of one run and what they prove: medians with spread, paired ratios, targets met or missed. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["TOLERANCE", "CaseResult", "Outcome", "Spread", "Target", "VariantResult", "Verdict", "judge"]

TOLERANCE = 0.15
"""A target missed by more than this fails the run; by less it is shown as near, because machines are noisy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median and the extremes it was taken from."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median=statistics.median(values), low=min(values), high=max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A claim: one metric of `of`, divided by that of `versus` (None: not divided), is at most or at least x.

    Say `at_most` where lower is better and `at_least` where higher is better.
    With `work` it is a row of results/README.md, under that name; `profile` says there, in one sentence, what profiling
    has found, for as long as the target is missed.
    """

    metric: str
    of: str = "ours"
    versus: str | None
    at_most: float | None = None
    at_least: float | None = None
    work: str = ""
    profile: str = ""

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"a target states at_most or at_least, exactly one: {self.metric} of {self.of}")
        if self.bound < 0 or self.at_least == 0:
            raise ValueError(f"a target's bound is positive (or at_most=0, for none at all): {self.bound}")

    @property
    def bound(self) -> float:
        bound = self.at_most if self.at_least is None else self.at_least
        assert bound is not None
        return bound

    def allows(self, value: float, *, tolerance: float = 0.0) -> bool:
        if self.at_most is not None:
            return value <= self.at_most * (1 + tolerance)
        return value >= self.bound * (1 - tolerance)

    def __str__(self) -> str:
        subject = f"{self.metric} of {self.of}" + (f" / {self.versus}" if self.versus else "")
        return f"{subject} {'≤' if self.at_least is None else '≥'} {self.bound:g}"


class Verdict(StrEnum):
    """`near` is a miss inside the tolerance: shown, but no failure. `skipped` means that a side did not run."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    NEAR = "near"
    MISS = "miss"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """All samples of one variant, one mapping per round; or none, and the reason why it did not run."""

    name: str
    label: str
    samples: tuple[Mapping[str, float], ...] = ()
    skipped: str | None = None
    versions: Mapping[str, str]

    def values(self, metric: str) -> list[float]:
        return [sample[metric] for sample in self.samples if metric in sample]

    def metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for sample in self.samples for metric in sample))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A target, the measured figure (None when a side was skipped) and the verdict."""

    target: Target
    measured: Spread | None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    name: str
    variants: tuple[VariantResult, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def missed(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.verdict is Verdict.MISS)


def judge(target: Target, variants: Mapping[str, VariantResult]) -> Outcome:
    """Compare round by round and take the median ratio: a machine that slows down slows both sides of a round."""
    sides = [variants[name] for name in (target.of, target.versus) if name is not None]
    for side in sides:
        if side.skipped is not None:
            return Outcome(target=target, measured=None, verdict=Verdict.SKIPPED, reason=f"{side.name}: {side.skipped}")
    columns = [side.values(target.metric) for side in sides]
    for side, column in zip(sides, columns, strict=True):
        if len(column) != len(side.samples) or not column:
            raise ValueError(f"{side.name} did not report {target.metric} in every round (has {side.metrics()})")
    if target.versus is None:
        measured = Spread.of(columns[0])
    else:
        if min(columns[1]) <= 0:
            raise ValueError(f"{target.versus} reported {min(columns[1])} for {target.metric}: no ratio to it")
        measured = Spread.of([ours / theirs for ours, theirs in zip(*columns, strict=True)])
    return Outcome(target=target, measured=measured, verdict=_verdict(target, measured.median))


def _verdict(target: Target, value: float) -> Verdict:
    if target.allows(value):
        return Verdict.PASS
    return Verdict.NEAR if target.allows(value, tolerance=TOLERANCE) else Verdict.MISS
