"""A commit coordinator for ranks that are threads of one process."""

import threading

from strata.checkpoint.commit import SaveAttempt, SaveOutcome, Vote, new_attempt_id
from strata.errors import CheckpointAborted
from strata.types.checkpoints import CheckpointInfo

__all__ = ["ThreadCommit"]


class ThreadCommit:
    """Decides when every rank has voted: all of them share this object."""

    def __init__(self, ranks: tuple[int, ...], deadline_s: float = 600.0) -> None:
        self._ranks = tuple(sorted(ranks))
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
                    attempt=new_attempt_id(0),
                    generation=0,
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
