"""Which checkpoints stay and which go: pure decisions, each with its reason. Acting on them is the manager's job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strata.errors import InvalidConfig

__all__ = ["RetentionPlan", "RetentionPolicy", "SaveFolder", "plan_garbage", "plan_retention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """Every committed step is in exactly one of the two, with the reason to show."""

    keep: Mapping[int, str]
    delete: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """Keep the newest `keep_count` (None: all) and every step divisible by `keep_every`."""

    keep_count: int | None = 5
    keep_every: int | None = None

    def __post_init__(self) -> None:
        for name in ("keep_count", "keep_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidConfig(f"{name} is {value}; it must be 1 or more, or None")


def plan_retention(steps: Sequence[int], policy: RetentionPolicy, protected: Mapping[int, str]) -> RetentionPlan:
    """Keeps what the policy says and what is protected: pinned, just saved, being read, the newest verified one."""
    keep_count, keep_every = policy.keep_count, policy.keep_every
    newest_first = sorted(set(steps), reverse=True)
    keep: dict[int, str] = {}
    delete: dict[int, str] = {}
    for place, step in enumerate(newest_first):
        if step in protected:
            keep[step] = protected[step]
        elif keep_count is None or place < keep_count:
            keep[step] = "one of the newest" if keep_count is None else f"one of the newest {keep_count}"
        elif keep_every is not None and step % keep_every == 0:
            keep[step] = f"every {keep_every} steps"
        else:
            delete[step] = f"{place} newer ones exist, keep_count is {keep_count}"
    return RetentionPlan(keep=keep, delete=delete)


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
