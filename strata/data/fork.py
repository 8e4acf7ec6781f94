"""Which batches the loaders of this process leave out, because its task is a fork."""

from dataclasses import dataclass

__all__ = ["ForkedData"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedData:
    """`name` is the forked task's: a cursor that carries it has its `skip` resolved already. A batch first…last is
    counted from the cursor of the checkpoint that the fork begins with, whose next one is 0."""

    name: str
    skip: tuple[tuple[int, int], ...]
