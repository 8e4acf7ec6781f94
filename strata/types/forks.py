"""A fork: a task that begins with a checkpoint of another one and its place in the data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from strata.errors import InvalidArgument
from strata.types.names import check_name

__all__ = ["MAX_REACH", "ForkRequest", "ForkedData", "TaskFork", "check_skip", "read_skip"]

MAX_REACH = 1_000_000  # steps after the checkpoint: each is looked at once to know its samples
_MAX_RANGES = 100
_MAX_STEP = 2**53

Steps = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """What is asked for: the checkpoint `checkpoint_id`, else the newest good one at or before `step`, else the newest
    that holds none of the steps to `skip`."""

    step: int | None = None
    checkpoint_id: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    skip: tuple[Steps, ...] = ()
    name: str = ""
    arguments: tuple[str, ...] = ()
    by: str = ""

    def __post_init__(self) -> None:
        if self.step is not None and not 0 <= self.step <= _MAX_STEP:
            raise InvalidArgument(f"step is {self.step}, it must be between 0 and {_MAX_STEP}")
        if self.step is not None and self.checkpoint_id:
            raise InvalidArgument("a step and a checkpoint were named", hint="Name one of them.")
        object.__setattr__(self, "skip", check_skip(self.skip))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFork:
    """Where a task begins: with the checkpoint of `step` below `path` that task `task_id` saved. `skip` are the steps
    of that task, first and last, whose batches are left out; `changes` is what its config is given anew, `by` who
    asked."""

    task_id: str
    step: int
    checkpoint_id: str
    path: str
    skip: tuple[Steps, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""

    def __post_init__(self) -> None:
        check_name("task_id", self.task_id)
        check_name("checkpoint id", self.checkpoint_id)
        object.__setattr__(self, "skip", check_skip(self.skip))
        for first, last in self.skip:
            if first <= self.step:
                raise InvalidArgument(
                    f"step {first} cannot be left out: the checkpoint of step {self.step} holds it already",
                    hint=f"Fork from a checkpoint before step {first}.",
                )
            if last - self.step > MAX_REACH:
                raise InvalidArgument(
                    f"step {last} is more than {MAX_REACH} steps after the checkpoint of step {self.step}",
                    hint="Fork from a later checkpoint.",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedData:
    """Which batches the loaders of a forked task leave out. `name` is the task's: a cursor that carries it has its
    `skip` resolved already. A batch first…last is counted from the cursor of the checkpoint that the fork begins with,
    whose next one is 0."""

    name: str
    skip: tuple[Steps, ...]


def check_skip(skip: Iterable[Steps]) -> tuple[Steps, ...]:
    """Sorted, and those that overlap or touch as one."""
    found: list[Steps] = []
    for first, last in sorted(skip):
        if first < 1:
            raise InvalidArgument(f"steps {first}..{last} cannot be left out: the first step is 1")
        if last < first:
            raise InvalidArgument(f"steps {first}..{last} run backwards", hint=f"Did you mean {last}..{first}?")
        if last > _MAX_STEP:
            raise InvalidArgument(f"step {last} is too far away")
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    if len(found) > _MAX_RANGES:
        raise InvalidArgument(f"{len(found)} ranges of steps are to be left out, {_MAX_RANGES} are allowed")
    return tuple(found)


def read_skip(text: str) -> Steps:
    """`1200..1260`, both included, or one step."""
    first, dots, last = text.partition("..")
    try:
        return int(first), int(last) if dots else int(first)
    except ValueError:
        raise InvalidArgument(
            f"{text!r} names no steps to leave out", hint="Write FIRST..LAST, such as 1200..1260, or one step."
        ) from None
