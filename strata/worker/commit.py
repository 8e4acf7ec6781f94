"""The coordinator as the one who decides that a checkpoint of many ranks is complete."""

import time

from strata.checkpoint.commit import SaveAttempt, SaveOutcome, Vote
from strata.checkpoint.layout import step_folder
from strata.client.checkpoints import CheckpointsClient, RankVote, Ruling
from strata.errors import CheckpointAborted
from strata.types.checkpoints import CheckpointInfo, checkpoint_id_of

__all__ = ["CoordinatorCommit"]

_MARGIN_S = 30.0


class CoordinatorCommit:
    """Implements strata.checkpoint's CommitCoordinator for one rank."""

    def __init__(self, client: CheckpointsClient, storage_path: str, deadline_s: float = 600.0) -> None:
        self._client = client
        self._storage_path = storage_path
        self._deadline_s = deadline_s
        self._begun: dict[str, float] = {}  # attempt → when this rank began to write

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        ticket = self._client.begin(step, epoch, self._path_of(step), self._deadline_s)
        self._begun = {ticket.attempt: time.monotonic()}
        return SaveAttempt(
            step=ticket.step,
            epoch=epoch,
            attempt=ticket.attempt,
            generation=ticket.generation,
            ranks=ticket.ranks,
            committer=ticket.committer,
            deadline_s=ticket.deadline_s,
        )

    def vote(self, attempt: SaveAttempt, vote: Vote) -> None:
        took_s = time.monotonic() - self._begun.get(attempt.attempt, time.monotonic())
        noted = RankVote(
            rank=vote.rank, manifest_key=vote.key, manifest_hash=vote.digest, size_bytes=vote.size, duration_s=took_s
        )
        self._client.vote(attempt.attempt, noted)

    def wait_votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        ruling = self._client.wait(attempt.attempt, attempt.deadline_s + _MARGIN_S)
        if not (ruling.prepared or ruling.committed):
            raise CheckpointAborted(
                f"step {attempt.step} was given up: {ruling.reason} (missing ranks {list(ruling.missing)})",
                missing=ruling.missing,
            )
        return _votes(ruling)

    def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
        self._client.commit(attempt.attempt)

    def wait_outcome(self, attempt: SaveAttempt) -> SaveOutcome:
        ruling = self._client.wait(attempt.attempt, attempt.deadline_s + _MARGIN_S)
        if ruling.prepared:
            return SaveOutcome(
                committed=False, reason="it was lost before COMMIT.json was reported", votes=_votes(ruling)
            )
        return SaveOutcome(committed=ruling.committed, missing=ruling.missing, reason=ruling.reason)

    def abort(self, attempt: SaveAttempt, rank: int, reason: str) -> None:
        self._client.abort(attempt.attempt, reason)

    def removed(self, step: int, reason: str) -> None:
        self._client.removed(step, self._path_of(step), reason)

    def checked(self, step: int, attempt: str, damage: str) -> None:
        name = checkpoint_id_of(step, attempt) if attempt else ""
        self._client.checked(name, step, self._path_of(step), damage)

    def _path_of(self, step: int) -> str:
        return f"{self._storage_path.rstrip('/')}/{step_folder(step).rstrip('/')}"


def _votes(ruling: Ruling) -> tuple[Vote, ...]:
    return tuple(
        Vote(rank=vote.rank, key=vote.manifest_key, digest=vote.manifest_hash, size=vote.size_bytes)
        for vote in ruling.votes
    )
