"""A distributed commit with no coordinator: ranks meet through create-once objects in the checkpoint store itself.

Works on a shared folder and on any bucket that honours conditional writes; costs a poll every few milliseconds while
waiting.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

from strata.checkpoint.commit import SaveAttempt, SaveOutcome, Vote, new_attempt_id, raise_if_given_up
from strata.checkpoint.layout import attempt_folder, commit_key, manifest_key, step_folder
from strata.checkpoint.manifest import digest_of
from strata.errors import Fenced, InvalidArgument, StorageConflict, StorageNotFound
from strata.storage.base import ObjectStore
from strata.types.checkpoints import CheckpointInfo

__all__ = ["StoreCommit"]

_T = TypeVar("_T")
_FIRST_POLL_S, _SLOWEST_POLL_S = 0.002, 0.5


class StoreCommit:
    """`generation` must grow with every launch of the job: it is what keeps the votes of a dead launch out of a new
    one.

    An attempt is `step-…/begin-<generation>-<n>.json`, created once by whoever comes first. A vote is the rank's
    manifest itself. The decision is `a-<attempt>/DECISION.json`, created once: the committer writes "commit" after
    all votes, anybody writes "abort" after the deadline, and only one of the two can exist. A committer that falls
    silent after the last vote is replaced, by one rank after the other, `patience_s` apart: nobody here can tell slow
    from dead, and two committers of one attempt do no harm.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        rank: int,
        ranks: tuple[int, ...],
        generation: int,
        deadline_s: float = 600.0,
        patience_s: float = 3.0,
    ) -> None:
        if rank not in ranks:
            raise InvalidArgument(f"rank {rank} is not one of {ranks}")
        self._store = store
        self._patience_s = patience_s
        self._rank = rank
        self._ranks = tuple(sorted(ranks))
        self._generation = generation
        self._deadline_s = deadline_s
        self._begun_at: dict[str, float] = {}

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        number = 0
        while True:
            key = f"{step_folder(step)}begin-{self._generation:08d}-{number:04d}.json"
            attempt = self._join(key, step, epoch)
            decision = self._decision(attempt)
            if decision is None and attempt.attempt not in self._begun_at and rank not in self._missing(attempt):
                decision = self._decide(attempt, "abort", f"rank {rank} was restarted", missing=(rank,))
            if decision is None:
                self._fence(step)
                self._begun_at.setdefault(attempt.attempt, time.monotonic())
                return attempt
            number += 1

    def vote(self, attempt: SaveAttempt, vote: Vote) -> None:
        decision = self._decision(attempt)
        if decision is not None:
            raise_if_given_up(attempt.step, decision)

    def wait_votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        def arrived() -> SaveOutcome | None:
            decision = self._decision(attempt)
            if decision is None and not self._missing(attempt):
                decision = self._decide(attempt, "commit", "")
            return decision

        decision = self._poll(attempt, arrived) or self._expire(attempt)
        raise_if_given_up(attempt.step, decision)
        return self._votes(attempt)

    def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
        """Nothing to tell anybody: the others watch for COMMIT.json."""

    def wait_outcome(self, attempt: SaveAttempt) -> SaveOutcome:
        began = time.monotonic()
        complete_at: float | None = None

        def decided() -> SaveOutcome | None:
            nonlocal complete_at
            if self._committed_attempt(attempt.step) == attempt.attempt:
                return SaveOutcome(committed=True)
            decision = self._decision(attempt)
            if decision is not None and not decision.committed:
                return decision
            now = time.monotonic()
            if complete_at is None:
                # A listing per look would hammer a bucket: votes are looked for once the committer is late.
                late = now - began >= self._patience_s
                complete_at = now if decision is not None or (late and not self._missing(attempt)) else None
            elif now - complete_at >= self._patience_s * self._turn(attempt):
                return self._take_over(attempt, f"no COMMIT.json {now - complete_at:.1f} s after the last vote")
            return None

        found = self._poll(attempt, decided)
        if found is not None:
            return found
        expired = self._expire(attempt)
        if not expired.committed:
            return expired
        # All votes were in and the committer stopped before COMMIT.json.
        reason = f"rank {attempt.committer} did not commit in {attempt.deadline_s:g} s"
        return SaveOutcome(committed=False, missing=(attempt.committer,), reason=reason)

    def _turn(self, attempt: SaveAttempt) -> int:
        """After how many silent committers this rank takes over: 1 for the rank right after the committer."""
        return 1 + [rank for rank in attempt.ranks if rank != attempt.committer].index(self._rank)

    def _take_over(self, attempt: SaveAttempt, reason: str) -> SaveOutcome:
        decision = self._decide(attempt, "commit", "")
        return (
            SaveOutcome(committed=False, reason=reason, votes=self._votes(attempt)) if decision.committed else decision
        )

    def abort(self, attempt: SaveAttempt, rank: int, reason: str) -> None:
        self._decide(attempt, "abort", f"rank {rank}: {reason}", missing=(rank,))

    def _join(self, key: str, step: int, epoch: int) -> SaveAttempt:
        attempt = SaveAttempt(
            step=step,
            epoch=epoch,
            attempt=new_attempt_id(self._generation),
            generation=self._generation,
            ranks=self._ranks,
            committer=self._ranks[0],
            deadline_s=self._deadline_s,
        )
        try:
            self._store.put(key, json.dumps(asdict(attempt)).encode(), create=True)
        except StorageConflict:
            return self._read_attempt(key)
        return attempt

    def _read_attempt(self, key: str) -> SaveAttempt:
        record = json.loads(self._store.get(key))
        return SaveAttempt(**(record | {"ranks": tuple(record["ranks"])}))

    def _fence(self, step: int) -> None:
        """Ends what older launches left undecided, and refuses to run beside a newer one: a zombie cannot publish."""
        for found in self._store.list(step_folder(step)).objects:
            name = found.key.rpartition("/")[2]
            if not name.startswith("begin-"):
                continue
            generation = int(name[6:14])
            if generation > self._generation:
                raise Fenced(f"fenced: generation {self._generation}, current {generation}")
            if generation < self._generation:
                self._decide(self._read_attempt(found.key), "abort", f"generation {self._generation} has begun")

    def _missing(self, attempt: SaveAttempt) -> tuple[int, ...]:
        found = {each.key for each in self._store.list(attempt_folder(attempt.step, attempt.attempt)).objects}
        keys = {rank: manifest_key(attempt.step, attempt.attempt, rank) for rank in attempt.ranks}
        return tuple(rank for rank, key in keys.items() if key not in found)

    def _votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        return tuple(self._vote_of(attempt, rank) for rank in attempt.ranks)

    def _vote_of(self, attempt: SaveAttempt, rank: int) -> Vote:
        key = manifest_key(attempt.step, attempt.attempt, rank)
        data = self._store.get(key)
        return Vote(rank=rank, key=key, digest=digest_of(data), size=json.loads(data)["size"])

    def _decision(self, attempt: SaveAttempt) -> SaveOutcome | None:
        try:
            raw = json.loads(self._store.get(self._decision_key(attempt)))
        except StorageNotFound:
            return None
        return SaveOutcome(committed=raw["decision"] == "commit", missing=tuple(raw["missing"]), reason=raw["reason"])

    def _decide(self, attempt: SaveAttempt, decision: str, reason: str, missing: tuple[int, ...] = ()) -> SaveOutcome:
        """The first writer's word stands; everybody gets that one back."""
        record = {"decision": decision, "reason": reason, "missing": missing, "by": self._rank}
        try:
            self._store.put(self._decision_key(attempt), json.dumps(record).encode(), create=True)
        except StorageConflict:
            found = self._decision(attempt)
            assert found is not None
            return found
        return SaveOutcome(committed=decision == "commit", missing=missing, reason=reason)

    def _expire(self, attempt: SaveAttempt) -> SaveOutcome:
        reason = f"not all votes came in {attempt.deadline_s:g} s"
        return self._decide(attempt, "abort", reason, missing=self._missing(attempt))

    def _committed_attempt(self, step: int) -> str | None:
        try:
            found: str = json.loads(self._store.get(commit_key(step)))["attempt"]
        except StorageNotFound:
            return None
        return found

    def _decision_key(self, attempt: SaveAttempt) -> str:
        return f"{attempt_folder(attempt.step, attempt.attempt)}DECISION.json"

    def _poll(self, attempt: SaveAttempt, look: Callable[[], _T | None]) -> _T | None:
        """Looks until there is something to see or the deadline (counted from this rank's begin) has passed."""
        started = time.monotonic()
        until = self._begun_at.get(attempt.attempt, started) + attempt.deadline_s
        while True:
            found = look()
            now = time.monotonic()
            if found is not None or now >= until:
                return found
            # A twentieth of the wait so far: quick saves are seen at once, long ones do not hammer a bucket.
            pause = min(max((now - started) / 20, _FIRST_POLL_S), _SLOWEST_POLL_S)
            time.sleep(min(pause, until - now))
