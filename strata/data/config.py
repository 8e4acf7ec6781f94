"""The options of a Loader, with their defaults and their checks."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from strata.data.table.columns import Columns
from strata.errors import InvalidArgument
from strata.sharding.order import Tail

__all__ = ["LoaderConfig", "LoaderOptions", "check_batch_size"]

_LARGEST = 1 << 40


class LoaderOptions(TypedDict, total=False):
    """The keyword arguments of Loader: the fields of LoaderConfig, for type checkers and editors."""

    format: str | None
    columns: tuple[str, ...] | list[str] | None
    shuffle: bool | None
    seed: int | None
    tail: Tail
    rank: int
    world_size: int
    worker_count: int | None
    num_lanes: int | None
    window: int | None
    memory_bytes: int
    prefetch_bytes: int
    num_threads: int
    on_error: Literal["raise", "skip"]
    with_index: bool
    transform: Callable[[Columns], Columns] | None
    cache_dir: Path | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConfig:
    """How to read. None means: as the dataset was registered, else shuffled with seed 0; lanes and window are chosen to
    fit the data.

    `world_size` processes read now. `worker_count` is the declared size of the job (default: world_size) and fixes the
    global batch: while it stays the same, a job may shrink and grow in mid-epoch. `memory_bytes` bounds the open
    windows, `prefetch_bytes` what is read ahead of them.
    """

    format: str | None = None
    columns: tuple[str, ...] | list[str] | None = None
    shuffle: bool | None = None
    seed: int | None = None
    tail: Tail = "ragged"
    rank: int = 0
    world_size: int = 1
    worker_count: int | None = None
    num_lanes: int | None = None
    window: int | None = None
    memory_bytes: int = 512 << 20
    prefetch_bytes: int = 256 << 20
    num_threads: int = 2
    on_error: Literal["raise", "skip"] = "raise"
    with_index: bool = False
    transform: Callable[[Columns], Columns] | None = None
    cache_dir: Path | str | None = None

    def __post_init__(self) -> None:
        for name, least in (("memory_bytes", 1), ("prefetch_bytes", 0), ("num_threads", 0)):
            if getattr(self, name) < least:
                raise InvalidArgument(f"{name} must be at least {least}: {getattr(self, name)}")
        if self.seed is not None:
            object.__setattr__(self, "seed", _whole("seed", self.seed))
        if self.on_error not in ("raise", "skip"):
            raise InvalidArgument(f"on_error is {self.on_error!r}; allowed are 'raise' and 'skip'")
        if self.columns is not None and not self.columns:
            raise InvalidArgument("columns is empty: leave it out to read all of them")


def check_batch_size(value: Any) -> int:
    size = _whole("batch_size", value)
    if not 1 <= size <= _LARGEST:
        raise InvalidArgument(f"batch_size must be at least 1, and at most {_LARGEST:,}: {size}")
    return size


def _whole(name: str, value: Any) -> int:
    """Returns it as an int: a whole number of any library."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgument(
            f"{name} is {value!r}, it must be a whole number", hint="Divide by //, and int() reads a text."
        ) from None
