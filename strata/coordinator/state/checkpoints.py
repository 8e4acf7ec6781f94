"""The two-phase commit of checkpoints that many ranks write. Pure; it knows names, sizes and votes, never bytes.

An attempt belongs to one generation. Once every rank has voted it is prepared: every byte is durable, and the committer
may create COMMIT.json, which alone decides. A death before that aborts the attempt and names who did not vote. A death
after it makes another rank the committer.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from strata.cluster.events import (
    CheckpointAborted,
    CheckpointBegun,
    CheckpointCommitted,
    CheckpointPrepared,
    CheckpointRemoved,
    CheckpointVerified,
    CheckpointVoted,
    MembersLost,
)
from strata.cluster.members import Worker
from strata.cluster.model import Cluster
from strata.coordinator.state.attempts import SaveAttempt, Verdict, Vote, dump_attempt, load_attempt
from strata.coordinator.state.commands import BeginCheckpoint, NotifyCheckpoint
from strata.coordinator.state.membership import Membership
from strata.coordinator.state.now import Now
from strata.errors import CheckpointAborted as Aborted
from strata.errors import CheckpointNotFound, InvalidArgument, Refused
from strata.types.checkpoints import CheckpointInfo, checkpoint_id_of
from strata.types.names import check_name
from strata.types.plain import Records, shared
from strata.types.ranks import ranks_text
from strata.types.workers import check_count

__all__ = ["Checkpoints"]

_KEEP_ATTEMPTS = 200
_KEEP_AT_LEAST = 4
_KEEP_VOTES = 50_000  # of attempts that are over, all together: every snapshot holds them
REMOVED = 4
CHECKED = 5
"""The types of a notification that says: deleted, checked (CheckpointInfo.Type on the wire)."""


class Checkpoints:
    """The attempts under way and the last that ended; what was saved is in the cluster's records."""

    def __init__(self, cluster: Cluster, membership: Membership) -> None:
        self._cluster = cluster
        self._membership = membership
        self.attempts: dict[str, SaveAttempt] = {}
        self._begun = 0

    # --- reading

    def attempt(self, attempt: str) -> SaveAttempt:
        found = self.attempts.get(attempt)
        if found is None:
            raise CheckpointNotFound(f"no checkpoint attempt {attempt!r} is known")
        return found

    def latest(self, task_id: str) -> CheckpointInfo | None:
        return self._cluster.checkpoints.latest(task_id)

    def latest_step(self, task_id: str) -> int:
        """The step of the newest completed checkpoint, or of the one that a fork begins with; -1 when there is none."""
        latest = self.latest(task_id)
        if latest is not None:
            return latest.step
        task = self._cluster.tasks.get(task_id)
        return task.spec.fork.step if task is not None and task.spec.fork is not None else -1

    # --- deciding

    def plan_notified(
        self, worker: Worker, told: NotifyCheckpoint, now: Now
    ) -> CheckpointCommitted | CheckpointRemoved | CheckpointVerified | None:
        """A worker saved a checkpoint by itself, or deleted or checked one: None when nobody knows that one as
        complete."""
        for name in ("step", "epoch", "size_bytes"):
            check_count(name, getattr(told, name))
        if told.type == REMOVED:
            return self._plan_removed(worker, told, now)
        if told.type == CHECKED:
            known = self._cluster.checkpoints.find(told.checkpoint_id, told.storage_path)
            own = known is not None and (known.task_id or "") == worker.task_id
            return self.plan_verified(known, told.metadata.get("damage", ""), now) if known and own else None
        check_name("checkpoint_id", told.checkpoint_id)
        return CheckpointCommitted(
            **{**shared(CheckpointCommitted, told), "metadata": dict(told.metadata)},
            task_id=worker.task_id,
            attempt="",
            worker_id=worker.worker_id,
            at=now.wall,
        )

    def plan_verified(self, record: CheckpointInfo, damage: str, now: Now) -> CheckpointVerified | None:
        """Records a check of a checkpoint; None when the same damage is known already."""
        if damage and record.verified is False and record.reason == damage:
            return None
        return CheckpointVerified(
            checkpoint_id=record.id, task_id=record.task_id or "", step=record.step, damage=damage, at=now.wall
        )

    def _plan_removed(self, worker: Worker, told: NotifyCheckpoint, now: Now) -> CheckpointRemoved | None:
        """The completed checkpoints at that path are deleted."""
        gone = self._cluster.checkpoints.completed_at(told.storage_path, worker.task_id)
        if not gone:
            return None
        reason = told.metadata.get("reason", "deleted from its store")
        return CheckpointRemoved(task_id=worker.task_id, checkpoint_ids=gone, reason=reason, at=now.wall)

    def plan_begin(self, worker: Worker, asked: BeginCheckpoint, now: Now) -> CheckpointBegun | SaveAttempt:
        """A new attempt, or the one that the other ranks of this generation have begun for this step."""
        step = check_count("step", asked.step)
        check_count("epoch", asked.epoch)
        if not 0 < asked.deadline_s < math.inf:
            raise InvalidArgument(f"deadline_s is {asked.deadline_s}, it must be finite and more than 0")
        group = self._membership.groups[worker.task_id]
        for known in self.attempts.values():
            if known.task_id == worker.task_id and known.step == step and known.joinable(group.fence):
                return known
        attempt = f"g{group.generation}-{self._begun + 1}"
        return CheckpointBegun(
            **shared(CheckpointBegun, asked),
            task_id=worker.task_id,
            attempt=attempt,
            checkpoint_id=checkpoint_id_of(step, attempt),
            generation=group.generation,
            ranks=self._membership.ranks(worker.task_id),
            worker_id=worker.worker_id,
            at=now.wall,
        )

    def plan_vote(self, worker: Worker, attempt: str, rank: int, vote: Vote) -> CheckpointVoted | None:
        """None when this rank has voted so already."""
        known = self.attempt(attempt)
        if known.task_id != worker.task_id or rank != worker.rank or not known.has_rank(rank):
            raise InvalidArgument(f"worker {worker.label} cannot vote as rank {rank} in attempt {attempt}")
        self._raise_if_aborted(known)
        earlier = known.votes.get(rank)
        if earlier is not None:
            if earlier.manifest_hash != vote.manifest_hash:
                raise Refused(f"rank {rank} has voted in attempt {attempt} with another manifest")
            return None
        return CheckpointVoted(attempt=attempt, rank=rank, **shared(CheckpointVoted, vote))

    def plan_prepared(self, attempt: str) -> CheckpointPrepared | None:
        """When every vote is in: the lowest live rank writes COMMIT.json."""
        known = self.attempt(attempt)
        if known.verdict is not Verdict.UNDECIDED or not known.complete:
            return None
        return CheckpointPrepared(attempt=attempt, committer=self._pick_committer(known, ()))

    def plan_commit(
        self, worker: Worker, attempt: str, metadata: dict[str, str], now: Now
    ) -> CheckpointCommitted | None:
        """None when it is committed already. With every vote in, COMMIT.json may exist whatever was decided since: it
        alone decides, so its report is always accepted."""
        known = self.attempt(attempt)
        if known.task_id != worker.task_id:
            raise InvalidArgument(f"worker {worker.worker_id} does not belong to attempt {attempt}")
        if known.verdict is Verdict.COMMITTED:
            return None
        if not known.complete:
            self._raise_if_aborted(known)
            raise Refused(f"attempt {attempt} cannot be committed without the votes of {ranks_text(known.unvoted())}")
        votes = known.votes.values()
        return CheckpointCommitted(
            **{**shared(CheckpointCommitted, known), "worker_id": worker.worker_id},
            size_bytes=sum(vote.size_bytes for vote in votes),
            type=0,
            duration_s=max(vote.duration_s for vote in votes),
            metadata=metadata,
            at=now.wall,
        )

    def plan_replaced(self, committed: CheckpointCommitted | None) -> CheckpointRemoved | None:
        """A step that is saved again lies where the older one lay: that one is no more."""
        if committed is None:
            return None
        older = self._cluster.checkpoints.completed_at(committed.storage_path, committed.task_id)
        if not older:
            return None
        reason = f"replaced by {committed.checkpoint_id}"
        return CheckpointRemoved(task_id=committed.task_id, checkpoint_ids=older, reason=reason, at=committed.at)

    def plan_abort(self, worker: Worker, attempt: str, reason: str, now: Now) -> CheckpointAborted | None:
        """A rank gives up. No effect once every vote is in: the bytes are all there."""
        known = self.attempt(attempt)
        if known.task_id != worker.task_id or not known.has_rank(worker.rank):
            raise InvalidArgument(f"worker {worker.label} does not belong to attempt {attempt}")
        if known.verdict is not Verdict.UNDECIDED:
            return None
        return _abort(known, f"rank {worker.rank} ({worker.worker_id}) gave up: {reason}", now)

    def plan_loss(self, lost: MembersLost, now: Now) -> list[CheckpointAborted | CheckpointPrepared]:
        """Decides what the loss of members means for the open attempts of their group."""
        dead = {self._membership.workers[worker_id].rank: worker_id for worker_id in lost.worker_ids}
        reasons = dict(zip(lost.worker_ids, lost.reasons, strict=True))
        planned: list[CheckpointAborted | CheckpointPrepared] = []
        for attempt in self.attempts.values():
            if attempt.task_id != lost.task_id or not attempt.open:
                continue
            involved = [rank for rank in sorted(dead) if attempt.has_rank(rank)]
            if not involved:
                continue
            if attempt.verdict is Verdict.UNDECIDED:
                why = "; ".join(f"rank {rank} ({dead[rank]}): {reasons[dead[rank]]}" for rank in involved)
                planned.append(_abort(attempt, why, now))
            elif attempt.committer in dead:
                heir = self._pick_committer(attempt, dead)
                if heir < 0:
                    planned.append(_abort(attempt, "every rank died before COMMIT.json was reported", now))
                else:
                    planned.append(CheckpointPrepared(attempt=attempt.attempt, committer=heir))
        return planned

    def plan_expiry(self, now: Now) -> list[CheckpointAborted | CheckpointPrepared]:
        """Aborts attempts whose deadline has passed before every rank voted. When the committer of a prepared attempt
        has not reported by its deadline, another rank becomes the committer."""
        planned: list[CheckpointAborted | CheckpointPrepared] = []
        for attempt in self.attempts.values():
            if not attempt.open or attempt.deadline > now.monotonic:
                continue
            if attempt.verdict is Verdict.UNDECIDED:
                planned.append(_abort(attempt, f"not complete within {attempt.deadline_s:g} s", now))
            else:
                heir = self._pick_committer(attempt, (attempt.committer,))
                planned.append(
                    CheckpointPrepared(attempt=attempt.attempt, committer=heir if heir >= 0 else attempt.committer)
                )
        return planned

    def _pick_committer(self, attempt: SaveAttempt, dead: Iterable[int]) -> int:
        alive = {worker.rank for worker in self._membership.alive_in(attempt.task_id)} - set(dead)
        return min((rank for rank in attempt.ranks if rank in alive), default=-1)

    def _raise_if_aborted(self, attempt: SaveAttempt) -> None:
        if attempt.verdict is Verdict.ABORTED:
            raise Aborted(f"checkpoint of step {attempt.step} was aborted: {attempt.reason}", missing=attempt.missing)

    # --- evolving

    def on_begun(self, event: CheckpointBegun, now: Now) -> None:
        self._begun += 1
        self.attempts[event.attempt] = SaveAttempt(
            **shared(SaveAttempt, event),
            begun_at=event.at,
            deadline=now.monotonic + event.deadline_s,
            committer=min(event.ranks),
        )
        closed = [item for item in self.attempts.values() if not item.open]
        kept = sum(1 + len(item.votes) for item in closed)
        for number, item in enumerate(closed, start=1):
            if len(closed) - number < _KEEP_AT_LEAST or (kept <= _KEEP_VOTES and len(closed) - number < _KEEP_ATTEMPTS):
                break
            kept -= 1 + len(item.votes)
            del self.attempts[item.attempt]

    def on_voted(self, event: CheckpointVoted) -> None:
        attempt = self.attempts[event.attempt]
        attempt.votes[event.rank] = Vote(**shared(Vote, event))

    def on_prepared(self, event: CheckpointPrepared, now: Now) -> None:
        attempt = self.attempts[event.attempt]
        attempt.verdict = Verdict.PREPARED
        attempt.committer = event.committer
        attempt.deadline = now.monotonic + attempt.deadline_s

    def on_aborted(self, event: CheckpointAborted) -> None:
        attempt = self.attempts[event.attempt]
        attempt.verdict = Verdict.ABORTED
        attempt.reason = event.reason
        attempt.missing = event.missing

    def on_committed(self, event: CheckpointCommitted) -> None:
        if event.attempt in self.attempts:
            self.attempts[event.attempt].verdict = Verdict.COMMITTED

    # --- snapshots

    def copy(self) -> dict[str, Any]:
        attempts = tuple(replace(attempt, votes=dict(attempt.votes)) for attempt in self.attempts.values())
        return {"begun": self._begun, "attempts": Records(attempts, dump_attempt)}

    def load(self, dumped: dict[str, Any], now: Now) -> None:
        self._begun = dumped["begun"]
        for values in dumped["attempts"]:
            self.attempts[values["attempt"]] = load_attempt(values, now)


def _abort(attempt: SaveAttempt, reason: str, now: Now) -> CheckpointAborted:
    return CheckpointAborted(attempt=attempt.attempt, reason=reason, missing=attempt.unvoted(), at=now.wall)
