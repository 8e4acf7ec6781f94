"""The journal: numbered events, durable before anybody hears of them (releases of barriers: kept), and a snapshot to
start from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["OUTCOMES", "Journal", "Record", "Snapshot", "Stored"]

OUTCOMES = ("BarrierBroke", "BarrierReleased")  # kinds of records that a snapshot leaves out, see `Snapshot`


@dataclass(frozen=True, slots=True)
class Record:
    """One event as it is stored and streamed. Its body is `first` and then `rest`, which other records may have, too: a
    barrier's names are the same each time, and thousands of records are kept."""

    seq: int
    at: float
    kind: str
    first: bytes
    rest: tuple[bytes, ...] = ()

    @property
    def body(self) -> bytes:
        return b"".join((self.first, *self.rest)) if self.rest else self.first

    @property
    def size(self) -> int:
        return len(self.first) + sum(map(len, self.rest))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after record `seq`. How barriers ended is not in it: records from `outcomes_from` on say that, and live
    as long as the snapshot. Encoding them would stop the coordinator: 6 MB, when a thousand members meet often."""

    seq: int
    body: bytes
    outcomes_from: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What a journal holds at the start: the last snapshot, the outcomes it left out, and the records after it; and by
    name what is in none of them, because they are streamed."""

    snapshot: Snapshot | None
    outcomes: list[Record]
    records: list[Record]
    private: dict[str, bytes] = field(default_factory=dict)

    @property
    def snapshot_seq(self) -> int:
        return self.snapshot.seq if self.snapshot else 0

    @property
    def last_seq(self) -> int:
        return self.records[-1].seq if self.records else self.snapshot_seq


class Journal(Protocol):
    """Append-only, one writer. `append` never blocks; what it was given becomes durable in order, many at a time.

    `keep` is `append` for what may be told before it is durable, if everything before it is durable or kept: the
    next `open` finds it even if this process is killed now, but not if its host loses power. False, and nothing is
    done, where there is no such place.

    A snapshot keeps its place in that order; `private` becomes durable with the records it came with.

    `open` returns when this process is the writer: where several share a journal, that may take for ever.
    `on_durable(seq)` is called on the event loop that `open` was called on whenever everything up to `seq` is safe.
    `on_failure` means that nothing more will become durable: the owner must stop. `leads` is False while another
    process may have become the writer: what this one says then may be old. `take_commit_times` gives the seconds each
    commit took since it was last asked.
    """

    async def open(self, on_durable: Callable[[int], None], on_failure: Callable[[BaseException], None]) -> Stored: ...

    def append(self, records: list[Record], private: Mapping[str, bytes] | None = None) -> None: ...

    def keep(self, record: Record) -> bool: ...

    def save_snapshot(self, snapshot: Snapshot) -> None: ...

    def leads(self) -> bool: ...

    def take_commit_times(self) -> list[float]: ...

    async def close(self) -> None: ...
