"""One try to save one step: who takes part, who has voted, how it ended. Pure; it knows names and sizes, not bytes."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from strata.coordinator.state.now import Now
from strata.errors import InvalidArgument
from strata.types.plain import from_plain, to_plain
from strata.types.workers import check_count

__all__ = ["SaveAttempt", "Verdict", "Vote", "dump_attempt", "load_attempt"]


class Verdict(StrEnum):
    """Where an attempt stands."""

    UNDECIDED = "undecided"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One rank's word that its bytes are durable."""

    manifest_key: str
    manifest_hash: str
    size_bytes: int
    duration_s: float

    def __post_init__(self) -> None:
        check_count("size_bytes", self.size_bytes)
        if not (math.isfinite(self.duration_s) and self.duration_s >= 0):
            raise InvalidArgument(f"duration_s is {self.duration_s}, it must be finite and 0 or more")


@dataclass(slots=True, kw_only=True)
class SaveAttempt:
    """One try to save one step. `deadline` is on the monotonic clock and fresh after a restart."""

    attempt: str
    checkpoint_id: str
    task_id: str
    step: int
    epoch: int
    generation: int
    ranks: tuple[int, ...]
    storage_path: str
    deadline_s: float
    worker_id: str
    begun_at: float
    deadline: float
    votes: dict[int, Vote] = field(default_factory=dict)
    verdict: Verdict = Verdict.UNDECIDED
    committer: int = -1
    reason: str = ""
    missing: tuple[int, ...] = ()

    @property
    def open(self) -> bool:
        return self.verdict in (Verdict.UNDECIDED, Verdict.PREPARED)

    def joinable(self, fence: int) -> bool:
        """Whether a rank that begins to save this step joins this attempt. It joins no prepared attempt of a generation
        before the fence: that one has all its votes, and the new save has other bytes."""
        return self.verdict is Verdict.UNDECIDED or (self.verdict is Verdict.PREPARED and self.generation >= fence)

    def has_rank(self, rank: int) -> bool:
        """Ranks are in order, and may be thousands."""
        place = bisect_left(self.ranks, rank)
        return place < len(self.ranks) and self.ranks[place] == rank

    @property
    def counted(self) -> bool:
        """Whether the ranks are all from 0 on, so that their number names them."""
        return self.ranks[0] == 0 and self.ranks[-1] == len(self.ranks) - 1

    @property
    def complete(self) -> bool:
        """Whether every rank has voted; only ranks of the attempt do."""
        return len(self.votes) == len(self.ranks)

    def unvoted(self) -> tuple[int, ...]:
        return tuple(rank for rank in self.ranks if rank not in self.votes)


def dump_attempt(attempt: SaveAttempt) -> dict[str, Any]:
    """As JSON, without the deadline, which is fresh after a restart."""
    values = to_plain(attempt)
    del values["deadline"]
    return {**values, "votes": {str(rank): to_plain(vote) for rank, vote in attempt.votes.items()}}


def load_attempt(values: dict[str, Any], now: Now) -> SaveAttempt:
    votes = {int(rank): from_plain(Vote, vote) for rank, vote in values["votes"].items()}
    return from_plain(SaveAttempt, {**values, "votes": votes, "deadline": now.monotonic + values["deadline_s"]})
