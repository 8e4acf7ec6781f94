"""Who decides that a checkpoint of many ranks is complete: the interface, and the decision of a process that is alone.

Bytes never pass through the coordinator. It hands out attempts, collects votes, and says when all votes of one
generation are in; the committer it names then creates COMMIT.json, whose existence is the only truth.
"""

import secrets
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from strata.errors import CheckpointAborted, InvalidArgument
from strata.types.checkpoints import CheckpointInfo
from strata.types.names import check_name
from strata.types.ranks import ranks_text

__all__ = [
    "CommitCoordinator",
    "KeepsCatalog",
    "SaveAttempt",
    "SaveOutcome",
    "SoloCommit",
    "Vote",
    "new_attempt_id",
    "raise_if_given_up",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveAttempt:
    """One try to save one step. Every rank gets the same record. `deadline_s` counts from `begin`."""

    step: int
    epoch: int
    attempt: str
    generation: int
    ranks: tuple[int, ...]
    committer: int
    deadline_s: float

    def __post_init__(self) -> None:
        check_name("attempt", self.attempt)
        if self.committer not in self.ranks:
            raise InvalidArgument(f"committer {self.committer} is not one of the ranks {self.ranks}")
        if not self.deadline_s > 0:
            raise InvalidArgument(f"deadline_s is {self.deadline_s}; it must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A rank's word that its bytes are durable: the key and hash of its manifest, and how many bytes of data it
    wrote."""

    rank: int
    key: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOutcome:
    """How a save attempt ended. `missing` names the ranks that did not vote, `reason` says why it was given up.

    An outcome with `votes` is no end: all votes are in but the committer is gone, and the rank that gets this outcome
    must take its place. That is safe even if the old committer still lives, because COMMIT.json can be created only
    once and both would write the same attempt.
    """

    committed: bool
    missing: tuple[int, ...] = ()
    reason: str = ""
    votes: tuple[Vote, ...] = ()


def raise_if_given_up(step: int, outcome: SaveOutcome) -> None:
    if not outcome.committed:
        missing = f" (missing {ranks_text(outcome.missing)})" if outcome.missing else ""
        raise CheckpointAborted(f"step {step} was given up: {outcome.reason}{missing}", missing=outcome.missing)


class CommitCoordinator(Protocol):
    """The whole of what a distributed save needs. Calls block, and every one may be repeated: a retry changes nothing.

    An implementation raises Fenced when the caller belongs to an older generation, CheckpointAborted (with the
    missing ranks) when the attempt was given up, and a StrataError of its own when it cannot be reached.
    """

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        """The running attempt for this step, or a new one when there is none, the last was given up, or this rank has
        voted in it already (it was restarted, so the old votes no longer belong together)."""
        ...

    def vote(self, attempt: SaveAttempt, vote: Vote) -> None:
        """Records the vote durably before returning."""
        ...

    def wait_votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        """For the committer: all votes, ordered by rank, once every rank's is in."""
        ...

    def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
        """From the committer: COMMIT.json exists. If this call is lost the checkpoint exists all the same."""
        ...

    def wait_outcome(self, attempt: SaveAttempt) -> SaveOutcome:
        """For the other ranks: how the attempt ended, or that this rank must commit. Returns by the deadline at the
        latest."""
        ...

    def abort(self, attempt: SaveAttempt, rank: int, reason: str) -> None:
        """A rank that cannot go on says so, so that nobody waits for the deadline. No effect once votes are
        complete."""
        ...


@runtime_checkable
class KeepsCatalog(Protocol):
    """A coordinator that keeps a list of checkpoints for others, and so must hear of deletions and checks."""

    def removed(self, step: int, reason: str) -> None:
        """The checkpoint of `step` is deleted from the store; said again, it changes nothing."""
        ...

    def held(self) -> frozenset[int] | None:
        """The steps that others still need, as of the newest commit: retention leaves them alone. None: not known, so
        nothing may go."""
        ...

    def checked(self, step: int, attempt: str, damage: str) -> None:
        """Every byte was read: all are as they were written, or `damage` says which are not."""
        ...


def new_attempt_id(generation: int) -> str:
    return f"{generation}-{secrets.token_hex(4)}"


class SoloCommit:
    """Decides for a process that saves alone: its own vote is enough, and nobody else waits for the end."""

    def __init__(self, deadline_s: float = 600.0) -> None:
        self._deadline_s = deadline_s
        self._votes: tuple[Vote, ...] = ()

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        return SaveAttempt(
            step=step,
            epoch=epoch,
            attempt=new_attempt_id(0),
            generation=0,
            ranks=(rank,),
            committer=rank,
            deadline_s=self._deadline_s,
        )

    def vote(self, attempt: SaveAttempt, vote: Vote) -> None:
        self._votes = (vote,)

    def wait_votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        return self._votes

    def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
        """COMMIT.json says it."""

    def wait_outcome(self, attempt: SaveAttempt) -> SaveOutcome:
        raise InvalidArgument(
            f"rank {attempt.committer} saves alone",
            hint="Ranks that save one checkpoint need a coordinator, such as strata.checkpoint.StoreCommit.",
        )

    def abort(self, attempt: SaveAttempt, rank: int, reason: str) -> None:
        """There is nobody to tell."""
