"""Which checkpoints stay and which go: pure decisions, each with its reason. Acting on them is the manager's job."""

import math
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strata.errors import InvalidConfig

__all__ = ["RetentionPolicy", "SaveFolder", "best_step", "plan_garbage", "plan_retention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """Keep the newest `keep_count` (None: all), every step divisible by `keep_every`, and the best one by a metric:
    `keep_best` is its name and whether less or more is better ("min" or "max")."""

    keep_count: int | None = 5
    keep_every: int | None = None
    keep_best: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        for name in ("keep_count", "keep_every"):
            value = getattr(self, name)
            if value is not None and not _counts(value):
                raise InvalidConfig(f"{name} is {value!r}; it must be a whole number, 1 or more, or None")
        if self.keep_best is not None and not _names_best(self.keep_best):
            raise InvalidConfig(
                f"keep_best is {self.keep_best!r}", hint='Give a metric and what is better: ("val/loss", "min").'
            )


def _counts(value: Any) -> bool:
    try:
        return operator.index(value) >= 1
    except TypeError:  # also NaN, above which nothing is old: every checkpoint would stay, without a word
        return False


def _names_best(given: Any) -> bool:
    return isinstance(given, Sequence) and tuple(given[1:]) in (("min",), ("max",)) and bool(given[0])


def best_step(metadata: Mapping[int, Mapping[str, Any]], keep_best: tuple[str, str]) -> int | None:
    """The step that was saved with the best value of the metric; of equal ones the newest. None when no save has one:
    NaN is no value."""
    metric, better = keep_best
    values: dict[int, float] = {}
    for step, noted in metadata.items():
        metrics = noted.get("metrics")
        value = metrics.get(metric) if isinstance(metrics, Mapping) else None
        if isinstance(value, int | float) and math.isfinite(value):
            values[step] = value if better == "max" else -value
    return max(values, key=lambda step: (values[step], step), default=None)


def plan_retention(steps: Iterable[int], policy: RetentionPolicy, protected: Collection[int]) -> dict[int, str]:
    """The steps to delete, each with the reason to show: all but what the policy keeps and what is protected."""
    keep_count, keep_every = policy.keep_count, policy.keep_every
    if keep_count is None:
        return {}
    return {
        step: f"{place} newer ones exist, keep_count is {keep_count}"
        for place, step in enumerate(sorted(set(steps), reverse=True))
        if place >= keep_count and step not in protected and (keep_every is None or step % keep_every)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveFolder:
    """The folder of one save attempt, as found in the store. `age_s` counts from the last change in it, or from when it
    was first seen."""

    step: int
    attempt: str
    committed: bool
    age_s: float


def plan_garbage(
    attempts: Sequence[SaveFolder], *, running: frozenset[str], grace_s: float
) -> dict[tuple[int, str], str]:
    """Attempts that can never become a checkpoint any more: not the committed one, not running, and quiet for
    `grace_s`."""
    return {
        (found.step, found.attempt): f"never committed, untouched for {found.age_s:.0f} s"
        for found in attempts
        if not found.committed and found.attempt not in running and found.age_s > grace_s
    }
