"""The journal: numbered events, durable before anybody hears of them, and a snapshot to start from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Journal", "Record", "Stored"]


@dataclass(frozen=True, slots=True)
class Record:
    """One event as it is stored and streamed."""

    seq: int
    at: float
    kind: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """What a journal holds at the start: a snapshot taken at `seq` (None = none) and the records after it."""

    seq: int
    snapshot: bytes | None
    records: list[Record]


class Journal(Protocol):
    """Append-only, one writer. `append` never blocks; what it was given becomes durable in order, many at a time.

    A snapshot keeps its place in that order.

    `on_durable(seq)` is called in the thread that `open` was called in (its event loop, where there is one) whenever
    everything up to `seq` is safe. `on_failure` means that nothing more will become durable: the owner must stop.
    `take_commit_times` gives the seconds each commit took since it was last asked.
    """

    def open(self, on_durable: Callable[[int], None], on_failure: Callable[[BaseException], None]) -> Stored: ...

    def append(self, records: list[Record]) -> None: ...

    def save_snapshot(self, seq: int, snapshot: bytes) -> None: ...

    def take_commit_times(self) -> list[float]: ...

    def close(self) -> None: ...
