"""The checkpoint of another task that a forked one begins with: read where it lies, never written to."""

from dataclasses import dataclass

from strata.checkpoint.catalog import Catalog
from strata.checkpoint.manifest import CommitManifest
from strata.checkpoint.reader import CheckpointReader
from strata.clock import Clock
from strata.errors import CheckpointNotFound, InvalidConfig
from strata.storage.base import ObjectStore
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store
from strata.types.checkpoints import checkpoint_id_of
from strata.types.forks import TaskFork

__all__ = ["Base", "Forking", "open_base", "own_store"]


@dataclass(slots=True)
class Forking:
    """A forked task as its processes know it. `found` says whether a manager of this process begins with its
    checkpoint: one that saves although none does has lost what it was forked from."""

    task_id: str
    fork: TaskFork
    found: bool = False

    def check_found(self) -> None:
        if not self.found:
            raise InvalidConfig(
                f"this task is a fork of {self.fork.task_id}, whose checkpoints lie in {self.fork.path}, and its "
                "script keeps its own somewhere that names neither this task nor that place: it began anew instead",
                hint="Let the script save into run.checkpoints(), or into a path that holds run.id.",
            )


class Base:
    """The one checkpoint that a fork begins with."""

    def __init__(self, store: ObjectStore, fork: TaskFork, clock: Clock) -> None:
        self.step = fork.step
        self.uri = store.uri
        self._store = store
        self._fork = fork
        self._catalog = Catalog(store, clock)

    def commit(self) -> CommitManifest:
        """Raises CheckpointNotFound when it is gone, or another was saved in its place; CorruptCheckpoint when it is
        damaged: a fork begins with this one or not at all."""
        fork = self._fork
        try:
            commit = self._catalog.commit_of(self.step)
        except CheckpointNotFound:
            commit = None
        if commit is None or checkpoint_id_of(commit.step, commit.attempt) != fork.checkpoint_id:
            what = "is gone" if commit is None else "was replaced by another of the same step"
            raise CheckpointNotFound(
                f"checkpoint {fork.checkpoint_id} of task {fork.task_id}, with which this fork begins, {what}: it was "
                f"in {self.uri}",
                hint="Fork again, from a checkpoint that is there.",
            )
        return commit

    def reader(self) -> CheckpointReader:
        return CheckpointReader(self._store, self.commit())


def own_store(
    given: ObjectStore, forking: Forking | None, *, opened: bool, storage: StorageOptions | None
) -> ObjectStore:
    """Where a forked task saves when its script names the very place of its parent: beneath that, in a folder of its
    own. `opened` means that the script gave an open store."""
    if forking is None or not _is_parents(given.uri, forking):
        return given
    if opened:
        raise InvalidConfig(
            f"{given.uri} holds the checkpoints of {forking.fork.task_id}, of which this task is a fork",
            hint="Give CheckpointManager the address instead of an open store, or a store of its own for each run.",
        )
    return open_store(f"{given.uri}/forks/{forking.task_id}", storage)


def open_base(store: ObjectStore, forking: Forking | None, clock: Clock, storage: StorageOptions | None) -> Base | None:
    """What a manager of a forked task begins with; None for one that keeps other things."""
    if forking is None or forking.task_id not in store.uri:
        return None
    forking.found = True
    return Base(open_store(forking.fork.path, storage), forking.fork, clock)


def _is_parents(uri: str, forking: Forking) -> bool:
    return forking.fork.path == uri or forking.fork.path.startswith(f"{uri}/forks/")
