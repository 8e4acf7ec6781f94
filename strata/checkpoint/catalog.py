"""What checkpoints a store holds, from the store alone: list, newest, pins, and the removal of what nobody needs."""

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from strata.checkpoint import faults
from strata.checkpoint.commit import KeepsCatalog
from strata.checkpoint.layout import (
    PINS,
    attempt_folder,
    commit_key,
    parse_attempt,
    parse_step,
    pin_key,
    step_folder,
)
from strata.checkpoint.manifest import CommitManifest
from strata.checkpoint.reader import CheckpointReader, Progress
from strata.checkpoint.retention import RetentionPolicy, SaveFolder, best_step, plan_garbage, plan_retention
from strata.clock import Clock
from strata.errors import CheckpointNotFound, CorruptCheckpoint, StorageError, StorageNotFound, StrataError
from strata.storage.base import HoldsUploads, ObjectStore

__all__ = ["Catalog", "Check"]

_log = logging.getLogger(__name__)


class Check(NamedTuple):
    """How the last look at a checkpoint's bytes ended; `damage` is empty when all are good."""

    damage: str
    at: float


class Catalog:
    """The checkpoints under one root. It keeps in memory only which steps were checked and which are being read;
    everything else is read from the store each time. `keeper` is the coordinator's catalog, which is told of every
    check."""

    def __init__(self, store: ObjectStore, clock: Clock, keeper: KeepsCatalog | None = None) -> None:
        self._store = store
        self._clock = clock
        self._keeper = keeper
        self._lock = threading.Lock()
        self._checks: dict[str, Check] = {}
        self._unreadable: set[int] = set()  # steps whose COMMIT.json is damaged, and the cluster knows
        self._reading: Counter[int] = Counter()
        self._first_seen: dict[str, float] = {}
        # By step: the committed attempt, and what it was saved with.
        self._known: dict[int, tuple[str, Mapping[str, Any]]] = {}
        self._untold: dict[int, str] = {}  # removed, and the keeper has not heard of it; with the reason

    def steps(self) -> list[int]:
        """Every step with a folder, newest first; committed or not."""
        found = (parse_step(folder) for folder in self._store.list().folders)
        return sorted((step for step in found if step is not None), reverse=True)

    def commit_of(self, step: int) -> CommitManifest:
        """COMMIT.json of a step: CheckpointNotFound when there is none, CorruptCheckpoint when it is not what was
        written."""
        try:
            data = self._store.get(commit_key(step))
        except StorageNotFound as error:
            raise CheckpointNotFound(f"no committed checkpoint for step {step} in {self._store.uri}") from error
        commit = CommitManifest.from_bytes(data, f"COMMIT.json of step {step}")
        if commit.step != step:
            raise CorruptCheckpoint(f"COMMIT.json of step {step} says step {commit.step}")
        self._known[step] = commit.attempt, commit.metadata
        return commit

    def commits(self) -> Iterator[CommitManifest]:
        """The readable commits, newest first, each read when it is asked for. A broken COMMIT.json is reported and left
        out."""
        return filter(None, map(self._readable, self.steps()))

    def all_commits(self) -> list[CommitManifest]:
        """As `commits`, but read side by side: in a bucket with a thousand steps one request after the other would take
        a minute."""
        with ThreadPoolExecutor(16, thread_name_prefix="checkpoint-list") as readers:
            return [commit for commit in readers.map(self._readable, self.steps()) if commit is not None]

    def _readable(self, step: int) -> CommitManifest | None:
        try:
            return self.commit_of(step)
        except CheckpointNotFound:
            return None
        except CorruptCheckpoint as error:
            _log.warning("%s; passed over", error)
            if step not in self._unreadable:
                self._unreadable.add(step)
                self._tell(step, "", str(error))
            return None

    def complete(self) -> Iterator[CommitManifest]:
        """Checkpoints that are committed and whose objects all exist with the right size, newest first."""
        for commit in self.commits():
            try:
                CheckpointReader(self._store, commit).check_sizes()
            except CorruptCheckpoint as error:
                self.note(commit, str(error))
                _log.warning("%s; looking for an older checkpoint", error)
                continue
            yield commit

    def pins(self) -> frozenset[int]:
        names = (found.key.removeprefix(PINS).removesuffix(".json") for found in self._store.list(PINS).objects)
        return frozenset(step for step in map(parse_step, names) if step is not None)

    def pin(self, step: int) -> None:
        self.commit_of(step)
        self._store.put(pin_key(step), b"{}")

    def unpin(self, step: int) -> None:
        self._store.delete(pin_key(step))

    def note(self, commit: CommitManifest, damage: str = "") -> None:
        """Remembers that every byte was found good, or what was found damaged, and tells the cluster. A damaged one is
        never deleted because of it."""
        if damage and self._is_gone(commit):
            return  # removed while it was read: no damage
        self._remember(commit, damage)
        self._tell(commit.step, commit.attempt, damage)

    def distrust_above(self, step: int) -> None:
        """Marks steps above `step` as suspect: another rank could not load them. They may then be saved again."""
        for commit in self.commits():
            if commit.step <= step:
                return
            self._remember(commit, "another rank could not load it")

    def _remember(self, commit: CommitManifest, damage: str) -> None:
        with self._lock:
            self._checks[commit.attempt] = Check(damage, self._clock.wall())

    def _is_gone(self, commit: CommitManifest) -> bool:
        try:
            return self.commit_of(commit.step).attempt != commit.attempt
        except CheckpointNotFound:
            return True
        except CorruptCheckpoint:
            return False

    def _tell(self, step: int, attempt: str, damage: str) -> None:
        if self._keeper is None:
            return
        try:
            self._keeper.checked(step, attempt, damage)
        except StrataError as error:
            _log.info("the coordinator was not told that step %d was checked: %s", step, error)

    def check_of(self, commit: CommitManifest) -> Check | None:
        with self._lock:
            return self._checks.get(commit.attempt)

    def verify(
        self, step: int, *, deep: bool = True, progress: Progress | None = None, paced: bool = False
    ) -> CommitManifest:
        """Checks sizes and, when `deep`, every byte; `paced` reads one chunk after the other."""
        commit = self.commit_of(step)
        reader = CheckpointReader(self._store, commit)
        with self.reading(step):
            try:
                if deep:
                    reader.check_bytes(progress, paced=paced)
                else:
                    reader.check_sizes()
            except CorruptCheckpoint as error:
                self.note(commit, str(error))
                raise
            if deep:
                self.note(commit)
        return commit

    @contextmanager
    def reading(self, step: int) -> Iterator[None]:
        """Retention leaves a step alone while it is being read here."""
        with self._lock:
            self._reading[step] += 1
        try:
            yield
        finally:
            with self._lock:
                self._reading[step] -= 1

    def remove(self, step: int, reason: str) -> None:
        """COMMIT.json first: whatever happens next, the rest is only garbage, never half a checkpoint."""
        self._known.pop(step, None)
        self._store.delete(commit_key(step))
        faults.reach("retired")
        self._store.delete(step_folder(step))
        self._untold[step] = reason

    def forget_removal(self, step: int) -> None:
        """The step is saved again: nobody may hear any more that it is gone."""
        self._untold.pop(step, None)

    def tell_removed(self) -> None:
        """Tells the keeper what is gone. One that cannot be reached is no failure: it hears of it next time."""
        if self._keeper is None:
            self._untold.clear()
            return
        for step, reason in list(self._untold.items()):
            try:
                self._keeper.removed(step, reason)
            except StrataError as error:
                _log.info("the coordinator was not told that step %d is removed, will try again: %s", step, error)
                return
            self._untold.pop(step, None)

    def retire(self, saved: int, policy: RetentionPolicy) -> None:
        """Applies retention after the step `saved` was committed. What cannot be removed now is tried again next
        time."""
        committed = self._committed()
        held = frozenset[int]() if self._keeper is None else self._keeper.held()
        if held is None:
            return
        protected = {saved, *held, *self.pins()}
        with self._lock:
            protected |= {step for step, count in self._reading.items() if count}
            checks = {step: self._checks.get(attempt) for step, attempt in committed.items()}
        verified = [step for step, check in checks.items() if check is not None and not check.damage]
        protected |= {max(verified)} if verified else set()
        if policy.keep_best is not None:
            best = best_step({step: self._known[step][1] for step in committed}, policy.keep_best)
            protected |= set() if best is None else {best}
        for step, reason in plan_retention(committed, policy, protected).items():
            try:
                self.remove(step, reason)
            except StorageError as error:
                _log.warning("could not remove checkpoint step %d, will try again: %s", step, error)
            else:
                _log.debug("removed checkpoint step %d: %s", step, reason)
        self.tell_removed()

    def _committed(self) -> dict[int, str]:
        """The committed attempt of each step. Each is read once and remembered: a long history would otherwise cost one
        request per step at every save."""
        steps = self.steps()
        for step in steps:
            if step not in self._known:
                self._readable(step)
        return {step: self._known[step][0] for step in steps if step in self._known}

    def sweep(self, *, running: frozenset[str], grace_s: float) -> int:
        """Removes the bytes of attempts that died; returns how many may have died but are too young to tell."""
        attempts = [found for found in self._attempts() if not found.committed and found.attempt not in running]
        doomed = plan_garbage(attempts, running=running, grace_s=grace_s)
        for (step, attempt), reason in doomed.items():
            try:
                self._store.delete(attempt_folder(step, attempt))
                self._drop_if_empty(step)
                _log.info("removed a dead attempt of step %d: %s", step, reason)
            except StorageError as error:
                _log.warning("could not remove attempt %s of step %d, will try again: %s", attempt, step, error)
        if isinstance(self._store, HoldsUploads):
            aborted = self._store.abort_uploads(grace_s)
            if aborted:
                _log.info("aborted %d unfinished uploads of writers that died", aborted)
        return len(attempts) - len(doomed)

    def _attempts(self) -> Iterator[SaveFolder]:
        for step in self.steps():
            listing = self._store.list(step_folder(step))
            committed: str | None = None
            if any(found.key == commit_key(step) for found in listing.objects):
                try:
                    committed = self.commit_of(step).attempt
                except (CheckpointNotFound, CorruptCheckpoint):
                    continue  # with an unreadable COMMIT.json nobody knows which attempt is good: keep all
            for folder in listing.folders:
                attempt = parse_attempt(folder)
                if attempt is not None:
                    age = self._age(folder)
                    yield SaveFolder(step=step, attempt=attempt, committed=attempt == committed, age_s=age)

    def _age(self, folder: str) -> float:
        """Seconds since the newest object in the folder was written. A folder without visible objects counts from when
        we first saw it."""
        changes = [found.modified_at for found in self._store.list(folder).objects]
        now = self._clock.wall()
        if changes:
            return now - max(changes)
        return now - self._first_seen.setdefault(folder, now)

    def _drop_if_empty(self, step: int) -> None:
        listing = self._store.list(step_folder(step))
        if not listing.folders and not any(found.key == commit_key(step) for found in listing.objects):
            self._store.delete(step_folder(step))
