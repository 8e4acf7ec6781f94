"""One save, from the first byte to the commit: begin, write, vote, decide. It never touches other steps; retention is
elsewhere."""

import contextlib
import logging
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from strata.checkpoint import faults
from strata.checkpoint.commit import CommitCoordinator, SaveAttempt, Vote, raise_if_given_up
from strata.checkpoint.copying import SlicedCopy
from strata.checkpoint.image import Image
from strata.checkpoint.layout import commit_key, data_key, manifest_key, step_path
from strata.checkpoint.manifest import CommitManifest, RankEntry, RankManifest, digest_of
from strata.checkpoint.options import CheckpointSettings
from strata.checkpoint.writer import HashedStream
from strata.errors import (
    CheckpointAborted,
    Conflict,
    CorruptCheckpoint,
    StorageConflict,
    StorageError,
    StorageNotFound,
    StrataError,
)
from strata.storage.base import ObjectStore
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus, checkpoint_id_of
from strata.types.plain import shared

__all__ = ["SaveJob", "SaveProgress", "Saver", "info_of"]

_log = logging.getLogger(__name__)


class SaveProgress(NamedTuple):
    """Where a save stands: queued, writing, voting, committing, completed or failed."""

    phase: str
    bytes_done: int
    bytes_total: int


@dataclass(slots=True, kw_only=True)
class SaveJob:
    """One save to be done. `buffers` are the image's bytes: the arrays' own memory, or a staging buffer, which `copy`
    may still be filling."""

    step: int
    epoch: int
    image: Image
    buffers: Iterable[memoryview]
    tree: Any
    metadata: Mapping[str, Any]
    data_state: Any
    overwrite: bool
    started_at: float
    copy: SlicedCopy | None = None
    phase: str = "queued"
    attempt: SaveAttempt | None = None
    stream: HashedStream | None = field(default=None, repr=False)

    @property
    def progress(self) -> SaveProgress:
        done = 0 if self.stream is None else self.stream.sent_bytes
        return SaveProgress(self.phase, done, self.image.size)


class Saver:
    """Runs jobs one after the other on the caller's thread; hashing has a thread of its own."""

    def __init__(self, store: ObjectStore, coordinator: CommitCoordinator, settings: CheckpointSettings) -> None:
        self._store = store
        self._coordinator = coordinator
        self._settings = settings
        self._clock = settings.clock
        self._hasher = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-hash")
        self._readers = ThreadPoolExecutor(16, thread_name_prefix="checkpoint-votes")  # its threads come when needed
        self._last_digest: tuple[int, str] | None = None
        self.create_once = True  # False once the store was seen to ignore conditional writes
        self.running: frozenset[str] = frozenset()

    def run(self, job: SaveJob, on_begin: Callable[[CheckpointInfo], None]) -> tuple[CheckpointInfo, bool]:
        """The completed checkpoint's record, and whether this rank was the committer (and so does the housekeeping)."""
        attempt, _ = self.prepare(job, on_begin)
        if attempt.committer != self._settings.rank:
            return self._follow(job, attempt)
        return self.commit(job, attempt, self._coordinator.wait_votes(attempt)), True

    def prepare(
        self, job: SaveJob, on_begin: Callable[[CheckpointInfo], None] = lambda _: None
    ) -> tuple[SaveAttempt, Vote]:
        """The first phase: this rank's bytes are durable, and it has voted for them."""
        attempt = self._begin(job)
        on_begin(self._unfinished(job, attempt, CheckpointStatus.IN_PROGRESS))
        try:
            vote = self._write(job, attempt)
        except BaseException as error:
            self._give_up(job, attempt, error)
            raise
        job.phase = "voting"
        if self._settings.before_vote is not None:
            self._settings.before_vote(job.step)
        self._coordinator.vote(attempt, vote)
        faults.reach("voted")
        return attempt, vote

    def failed(self, job: SaveJob, error: BaseException) -> CheckpointInfo | None:
        """The record of a save that ended badly, for the catalog; None when it had not even begun."""
        job.phase = "failed"
        if job.attempt is None:
            return None
        return self._unfinished(job, job.attempt, CheckpointStatus.FAILED, str(error))

    def close(self) -> None:
        self._hasher.shutdown()
        self._readers.shutdown()

    def _begin(self, job: SaveJob) -> SaveAttempt:
        if not job.overwrite and _read_commit(self._store, job.step) is not None:
            raise Conflict(
                f"step {job.step} is committed already in {self._store.uri}",
                hint="Save under a new step, or pass overwrite=True to replace it.",
            )
        attempt = self._coordinator.begin(self._settings.rank, job.step, job.epoch)
        job.attempt, job.phase = attempt, "writing"
        self.running = frozenset({attempt.attempt})
        faults.reach("begun")
        return attempt

    def _write(self, job: SaveJob, attempt: SaveAttempt) -> Vote:
        rank = self._settings.rank
        key = data_key(job.step, attempt.attempt, rank)
        if job.copy is not None:
            job.copy.join()
        job.stream = HashedStream(job.buffers, self._hasher)
        self._store.put_stream(key, job.stream, size=job.image.size)
        if job.copy is not None:
            job.copy.check()  # a write that was under way when the copy ended is known by now
        faults.reach("data_durable")
        manifest = RankManifest(
            step=job.step,
            attempt=attempt.attempt,
            rank=rank,
            key=key,
            size=job.image.size,
            chunks=job.stream.chunks(),
            tensors=job.image.tensors,
            tree=job.tree,
            data_state=job.data_state,
            metadata=job.metadata,
        )
        if job.image.tensors:  # plain values lie in the manifest: all states without an array have the same bytes
            self._warn_if_unchanged(job.step, manifest.digest)
        data = manifest.to_bytes()
        where = manifest_key(job.step, attempt.attempt, rank)
        self._store.put(where, data)
        faults.reach("manifest_durable")
        return Vote(rank=rank, key=where, digest=digest_of(data), size=job.image.size)

    def _warn_if_unchanged(self, step: int, digest: str) -> None:
        """Warns when two steps have bit-identical weights: the training loop handed over a stale copy (seen in the
        field: NeMo RL#3312)."""
        if self._last_digest is not None and self._last_digest[1] == digest and self._last_digest[0] != step:
            _log.warning(
                "step %d holds exactly the bytes of step %d: is the state updated?", step, self._last_digest[0]
            )
        self._last_digest = (step, digest)

    def commit(self, job: SaveJob, attempt: SaveAttempt, votes: tuple[Vote, ...]) -> CheckpointInfo:
        """The second phase, for one rank: with every rank's vote, COMMIT.json makes the checkpoint exist."""
        job.phase = "committing"
        faults.reach("votes_in")
        now = self._clock.wall()
        commit = CommitManifest(
            step=job.step,
            epoch=job.epoch,
            attempt=attempt.attempt,
            generation=attempt.generation,
            created_at=now,
            duration_s=max(self._clock.monotonic() - job.started_at, 0.0),
            writer=platform.node(),
            ranks=self._entries(votes),
            worker_id=self._settings.worker_id,
            task_id=self._settings.task_id,
            metadata=job.metadata,
        )
        faults.reach("before_commit")
        self._create_commit(job, commit)
        faults.reach("committed")
        info = info_of(commit, self._store.uri)
        try:
            self._coordinator.publish(attempt, info)
        except StrataError as error:
            # COMMIT.json decides, not the telling: a save that exists must not be reported as failed.
            _log.warning("step %d is committed, but the coordinator was not told: %s", job.step, error)
        faults.reach("published")
        job.phase = "completed"
        return info

    def _entries(self, votes: tuple[Vote, ...]) -> tuple[RankEntry, ...]:
        """Reads every rank's manifest back: a vote counts only if what it promised is there, byte for byte."""

        def entry(vote: Vote) -> RankEntry:
            data = self._store.get(vote.key)
            if digest_of(data) != vote.digest:
                raise CorruptCheckpoint(f"the manifest of rank {vote.rank} ({vote.key}) is not the one it voted for")
            found = RankManifest.from_bytes(data, f"the manifest of rank {vote.rank}")
            return RankEntry(
                rank=vote.rank,
                key=found.key,
                size=found.size,
                manifest_key=vote.key,
                manifest_size=len(data),
                manifest_digest=vote.digest,
                data_state=found.data_state,
            )

        if len(votes) == 1:
            return (entry(votes[0]),)
        return tuple(self._readers.map(entry, votes))

    def _create_commit(self, job: SaveJob, commit: CommitManifest) -> None:
        """Created once. A refusal may be our own earlier write whose answer was lost: the content tells."""
        create = self.create_once and not job.overwrite
        if not self.create_once and not job.overwrite and _read_commit(self._store, job.step) is not None:
            raise Conflict(f"step {job.step} was committed by somebody else")
        try:
            self._store.put(commit_key(job.step), commit.to_bytes(), create=create)
        except StorageError as error:
            try:
                found = _read_commit(self._store, job.step)
            except StorageError:
                raise error from None
            if found is not None and found.attempt == commit.attempt:
                return
            if not isinstance(error, StorageConflict):
                raise
            if found is not None:
                raise Conflict(f"step {job.step} was committed by attempt {found.attempt} first") from error
            # A COMMIT.json that does not match its own hash commits nothing: ours takes its place.
            self._store.put(commit_key(job.step), commit.to_bytes())

    def _follow(self, job: SaveJob, attempt: SaveAttempt) -> tuple[CheckpointInfo, bool]:
        decision = self._coordinator.wait_outcome(attempt)
        if decision.votes:
            _log.warning("step %d: this rank commits for rank %d: %s", job.step, attempt.committer, decision.reason)
            return self.commit(job, attempt, decision.votes), True
        raise_if_given_up(job.step, decision)
        commit = _read_commit(self._store, job.step)
        if commit is None or commit.attempt != attempt.attempt:
            raise CheckpointAborted(
                f"step {job.step}: the commit was announced, but another attempt's COMMIT.json is there"
            )
        job.phase = "completed"
        return info_of(commit, self._store.uri), False

    def _give_up(self, job: SaveJob, attempt: SaveAttempt, error: BaseException) -> None:
        """Before the vote nobody counts on our bytes: tell the others, and free the space (the disk may be full)."""
        rank = self._settings.rank
        # The error that brought us here matters more, and the deadline covers a lost abort.
        with contextlib.suppress(Exception):
            self._coordinator.abort(attempt, rank, f"{type(error).__name__}: {error}")
        for key in (data_key(job.step, attempt.attempt, rank), manifest_key(job.step, attempt.attempt, rank)):
            try:
                self._store.delete(key)
            except StorageError as failure:
                _log.warning("could not remove %s of the failed save: %s", key, failure)

    def _unfinished(
        self, job: SaveJob, attempt: SaveAttempt, status: CheckpointStatus, reason: str = ""
    ) -> CheckpointInfo:
        return CheckpointInfo(
            **shared(CheckpointInfo, job),
            **shared(CheckpointInfo, self._settings),
            id=checkpoint_id_of(job.step, attempt.attempt),
            path=step_path(self._store.uri, job.step),
            size_bytes=job.image.size,
            created_at=self._clock.wall(),
            status=status,
            reason=reason,
        )


def _read_commit(store: ObjectStore, step: int) -> CommitManifest | None:
    """None when there is none, or none that can be read: a broken COMMIT.json may be replaced, never trusted."""
    try:
        return CommitManifest.from_bytes(store.get(commit_key(step)), f"COMMIT.json of step {step}")
    except (StorageNotFound, CorruptCheckpoint):
        return None


def info_of(commit: CommitManifest, uri: str) -> CheckpointInfo:
    """The public record of a checkpoint that is just committed."""
    return CheckpointInfo(
        **shared(CheckpointInfo, commit),
        id=checkpoint_id_of(commit.step, commit.attempt),
        path=step_path(uri, commit.step),
        size_bytes=commit.total_bytes,
        status=CheckpointStatus.COMPLETED,
    )
