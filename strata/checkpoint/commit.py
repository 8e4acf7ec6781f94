"""Who decides that a checkpoint of many ranks is complete: the interface, and the decision of a process that is alone.

Bytes never pass through the coordinator. It hands out attempts, collects votes, and says when all votes of one
generation are in; the committer it names then creates COMMIT.json, whose existence is the only truth.
"""

import secrets
import threading
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from strata.errors import CheckpointAborted, InvalidArgument
from strata.types.checkpoints import CheckpointInfo
from strata.types.names import check_name

__all__ = ["CommitCoordinator", "KeepsCatalog", "SaveAttempt", "SaveOutcome", "SoloCommit", "Vote", "new_attempt_id"]


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

    def checked(self, step: int, attempt: str, damage: str) -> None:
        """Every byte was read: all are as they were written, or `damage` says which are not."""
        ...


def new_attempt_id(generation: int) -> str:
    return f"{generation}-{secrets.token_hex(4)}"


class SoloCommit:
    """Decides for a process that saves alone: its own vote is enough. It also serves ranks that are threads of one
    process."""

    def __init__(self, ranks: tuple[int, ...] = (0,), generation: int = 0, deadline_s: float = 600.0) -> None:
        self._ranks = tuple(sorted(ranks))
        self._generation = generation
        self._deadline_s = deadline_s
        self._changed = threading.Condition()
        self._running: dict[int, SaveAttempt] = {}
        self._votes: dict[str, dict[int, Vote]] = {}
        self._decisions: dict[str, SaveOutcome] = {}

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        with self._changed:
            running = self._running.get(step)
            if running is not None and rank in self._votes[running.attempt]:
                self._decide(running, SaveOutcome(committed=False, reason=f"rank {rank} began the step again"))
                running = None
            if running is None:
                running = SaveAttempt(
                    step=step,
                    epoch=epoch,
                    attempt=new_attempt_id(self._generation),
                    generation=self._generation,
                    ranks=self._ranks,
                    committer=self._ranks[0],
                    deadline_s=self._deadline_s,
                )
                self._running[step] = running
                self._votes[running.attempt] = {}
            return running

    def vote(self, attempt: SaveAttempt, vote: Vote) -> None:
        with self._changed:
            self._raise_if_aborted(attempt)
            self._votes[attempt.attempt][vote.rank] = vote
            self._changed.notify_all()

    def wait_votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        with self._changed:
            votes = self._votes[attempt.attempt]
            complete = self._changed.wait_for(
                lambda: len(votes) == len(attempt.ranks) or attempt.attempt in self._decisions, attempt.deadline_s
            )
            if not complete:
                self._decide(
                    attempt, SaveOutcome(committed=False, missing=self._missing(attempt), reason="deadline passed")
                )
            self._raise_if_aborted(attempt)
            return tuple(votes[rank] for rank in attempt.ranks)

    def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
        with self._changed:
            self._decide(attempt, SaveOutcome(committed=True))

    def wait_outcome(self, attempt: SaveAttempt) -> SaveOutcome:
        with self._changed:
            if not self._changed.wait_for(lambda: attempt.attempt in self._decisions, attempt.deadline_s):
                self._decide(
                    attempt, SaveOutcome(committed=False, missing=self._missing(attempt), reason="deadline passed")
                )
            return self._decisions[attempt.attempt]

    def abort(self, attempt: SaveAttempt, rank: int, reason: str) -> None:
        with self._changed:
            if len(self._votes[attempt.attempt]) < len(attempt.ranks):
                self._decide(attempt, SaveOutcome(committed=False, missing=(rank,), reason=reason))

    def _decide(self, attempt: SaveAttempt, decision: SaveOutcome) -> None:
        """The first decision stands. Older attempts of the step are forgotten with it, so that nothing grows for
        ever."""
        self._decisions.setdefault(attempt.attempt, decision)
        if self._running.get(attempt.step) is attempt:
            del self._running[attempt.step]
        while len(self._decisions) > 64:
            oldest = next(iter(self._decisions))
            del self._decisions[oldest]
            self._votes.pop(oldest, None)
        self._changed.notify_all()

    def _missing(self, attempt: SaveAttempt) -> tuple[int, ...]:
        return tuple(rank for rank in attempt.ranks if rank not in self._votes[attempt.attempt])

    def _raise_if_aborted(self, attempt: SaveAttempt) -> None:
        decision = self._decisions.get(attempt.attempt)
        if decision is not None and not decision.committed:
            raise CheckpointAborted(
                f"step {attempt.step} was given up: {decision.reason} (missing ranks {list(decision.missing)})",
                missing=decision.missing,
            )
