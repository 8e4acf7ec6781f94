"""torch.distributed.checkpoint on Strata's store: `dcp.save(state, storage_writer=StrataWriter("s3://bucket/run", 10))`

A checkpoint exists when the bytes of all ranks are durable, every chunk of it has a hash, and it is one of Strata's:
listed, verified and removed like any other. Values that are no tensors are kept as JSON, never as a pickle.
"""

import re
import secrets
import threading
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal

from strata.checkpoint.catalog import Catalog
from strata.checkpoint.codec import check_json, encode
from strata.checkpoint.commit import CommitCoordinator, KeepsCatalog, SaveAttempt, SoloCommit, Vote
from strata.checkpoint.image import plan_image
from strata.checkpoint.layout import FORMAT_KEY, check_whole
from strata.checkpoint.manifest import FORMAT
from strata.checkpoint.options import CheckpointSettings
from strata.checkpoint.owner import Owner, find_owner
from strata.checkpoint.reader import CheckpointReader
from strata.checkpoint.retention import RetentionPolicy
from strata.checkpoint.saver import SaveJob, Saver
from strata.clock import SystemClock
from strata.errors import (
    CheckpointAborted,
    CheckpointNotFound,
    CorruptCheckpoint,
    InvalidArgument,
    MissingExtra,
)
from strata.storage.base import ObjectStore, honours_create
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store

try:
    import torch
    from torch.distributed.checkpoint.metadata import MetadataIndex, StorageMeta
    from torch.distributed.checkpoint.staging import AsyncStager, DefaultStager, StagingOptions
    from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
except ImportError as error:
    raise MissingExtra("torch 2.9 or newer", "torch") from error

from strata.integrations.dcp_items import Contents, as_state, as_tree

__all__ = ["StrataReader", "StrataWriter"]

Where = str | PathLike[str]
_LAUNCH = secrets.token_hex(4)  # of this process: the coordinating rank's makes the attempts of a launch its own
_saves: Counter[tuple[str, int]] = Counter()
_stagers: deque[Any] = deque(maxlen=2)  # idle; their memory is used again by the next asynchronous save
_clock = SystemClock()
_DEADLINE_S = 600.0
_creating: dict[str, bool] = {}  # of each store: whether it refuses to create a key twice; asked once per process


class StrataWriter(StorageWriter, AsyncStager):  # type: ignore[misc]  # torch is not installed where types are checked
    """Writes one step under `path`, a folder or `s3://`, `gs://`, `az://`. Without `step` it is the number at the end
    of DCP's `checkpoint_id` ("step-10"). A step that is committed already is refused unless `overwrite`.

    In a task of Strata the cluster lists the checkpoint as well. `keep_count` removes older steps after the commit.
    Use it with `dcp.async_save` as it is: it copies the state into memory that the next save uses again.
    """

    _synchronize_after_execute = False  # the copy is complete when `stage` returns

    def __init__(
        self,
        path: Where,
        step: int | None = None,
        *,
        epoch: int = 0,
        metadata: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        keep_count: int | None = None,
        storage: StorageOptions | None = None,
    ) -> None:
        super().__init__()
        self._store = open_store(path, storage)
        self._step = step
        self._epoch = epoch
        self._metadata = {"format": "dcp", **check_json("metadata", metadata or {})}
        self._overwrite = overwrite
        self._policy = RetentionPolicy(keep_count=keep_count)
        self._rank = 0
        self._number = 0
        self._started_at = 0.0
        self._staged: deque[Any] = deque()
        self._prepared: tuple[Saver, SaveJob, SaveAttempt] | None = None

    def reset(self, checkpoint_id: Where | None = None) -> None:
        if checkpoint_id is not None:
            self._step = _step_of(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Where) -> bool:
        return _STEP.search(fspath(checkpoint_id)) is not None

    def storage_meta(self) -> Any:
        return StorageMeta(checkpoint_id=self._store.uri)

    def stage(self, state_dict: Any) -> Any:
        """A copy of the state that training cannot change any more."""
        try:
            stager = _stagers.popleft()
        except IndexError:
            gpu = torch.cuda.is_available()
            stager = DefaultStager(StagingOptions(gpu, False, False, gpu))
        self._staged.append(stager)
        return stager.stage(state_dict)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise InvalidArgument("use_collectives=False writes ranks that never agree on one checkpoint")
        if self._step is None:
            raise InvalidArgument("no step is known", hint="StrataWriter(path, step), or checkpoint_id='step-10'.")
        self._step = check_whole("step", self._step)
        self._rank = kwargs.get("rank", 0)
        place = (self._store.uri, self._step)
        self._number = _saves[place]
        _saves[place] += 1
        self._started_at = _clock.monotonic()

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """DCP's planner may keep a plan and never ask again, so that it says only what holds for the whole launch."""
        place = (_LAUNCH, len(plans))
        return [replace(plan, storage_data=place) for plan in plans]

    def write_data(self, plan: Any, planner: Any) -> Any:
        """This rank's bytes, durably. What goes back to the coordinating rank is its vote."""
        launch, world_size = plan.storage_data
        assert self._step is not None
        owner = _owner_of(self._rank, world_size)
        attempt = self._attempt(launch, world_size)
        settings = _settings(owner, self._rank, world_size)
        saver = Saver(self._store, _decider(owner, self._store, attempt), settings)
        state = as_state(plan, planner)
        tree, arrays = encode(state)
        image = plan_image(arrays)
        job = SaveJob(
            step=self._step,
            epoch=self._epoch,
            image=image,
            buffers=image.views(),
            tree=as_tree(tree, plan),
            metadata=self._metadata,
            data_state=None,
            overwrite=self._overwrite,
            started_at=self._started_at,
        )
        try:
            with _section(owner, "checkpoint"):
                attempt, vote = saver.prepare(job)
        except BaseException:
            saver.close()
            raise
        finally:
            job.buffers = ()
            if self._staged:
                _stagers.append(self._staged.popleft())
        self._prepared = (saver, job, attempt)
        result = WriteResult(index=MetadataIndex("vote"), size_in_bytes=vote.size, storage_data=(attempt.attempt, vote))
        done: Any = torch.futures.Future()
        done.set_result([result])
        return done

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        """On the coordinating rank, when every rank has voted: the checkpoint exists from here on."""
        assert self._prepared is not None
        saver, job, attempt = self._prepared
        said = [result.storage_data for rank in results for result in rank]
        votes: tuple[Vote, ...] = tuple(vote for _, vote in said)
        try:
            if {name for name, _ in said} != {attempt.attempt}:
                raise CheckpointAborted(f"step {job.step}: ranks saved in different attempts {sorted(dict(said))}")
            saver.create_once = _creates_once(self._store)
            saver.commit(job, attempt, votes)
        finally:
            saver.close()
        if self._policy.keep_count is not None:
            _catalog(self._store).retire(job.step, self._policy)

    def _attempt(self, launch: str, world_size: int) -> SaveAttempt:
        """Every rank counts its saves of a step, so that all name the same attempt without another word."""
        assert self._step is not None
        return SaveAttempt(
            step=self._step,
            epoch=self._epoch,
            attempt=f"dcp-{launch}-{self._number}",
            generation=0,
            ranks=tuple(range(world_size)),
            committer=0,
            deadline_s=_DEADLINE_S,
        )


class StrataReader(StorageReader):  # type: ignore[misc]  # as above
    """Reads a step that StrataWriter wrote, or the newest, for any number of ranks. Every chunk is checked against its
    hash: damage raises CorruptCheckpoint, which names rank, tensor, chunk and file."""

    def __init__(self, path: Where, step: int | None = None, *, storage: StorageOptions | None = None) -> None:
        super().__init__()
        self._store = open_store(path, storage)
        self._step = step
        self._catalog = _catalog(self._store)
        self._contents: Contents | None = None

    def reset(self, checkpoint_id: Where | None = None) -> None:
        self._contents = None
        if checkpoint_id is not None:
            self._step = _step_of(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Where) -> bool:
        return _STEP.search(fspath(checkpoint_id)) is not None

    @property
    def step(self) -> int | None:
        """The step that is read: the one given, or the newest whose objects are all there; None when nothing is
        saved."""
        if self._step is None:
            self._step = next((commit.step for commit in self._catalog.complete()), None)
        return self._step

    def read_metadata(self) -> Any:
        """DCP's metadata, made of what the ranks' manifests say."""
        if self.step is None:
            raise CheckpointNotFound(f"no checkpoint in {self._store.uri}", hint="Nothing was saved there yet.")
        commit = self._catalog.commit_of(self.step)
        if commit.metadata.get("format") != "dcp":
            raise InvalidArgument(
                f"step {commit.step} in {self._store.uri} was not saved by StrataWriter",
                hint="Load it with strata.CheckpointManager.",
            )
        self._contents = Contents(CheckpointReader(self._store, commit), commit)
        return self._contents.metadata

    def set_up_storage_reader(self, metadata: Any, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """All is known already."""

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        assert self._contents is not None
        commit = self._contents.commit
        with self._catalog.reading(commit.step), _section(find_owner(is_alone=True), "recovery"):
            try:
                self._contents.read(plan, planner)
            except CorruptCheckpoint as error:
                self._catalog.note(commit, str(error))
                raise
        done: Any = torch.futures.Future()
        done.set_result(None)
        return done


_STEP = re.compile(r"(\d+)\D*\Z")


def _step_of(checkpoint_id: Where) -> int:
    found = _STEP.search(fspath(checkpoint_id))
    if found is None:
        raise InvalidArgument(f"checkpoint_id {checkpoint_id!r} ends in no number", hint="Such as 'step-10'.")
    return int(found[1])


def _owner_of(rank: int, world_size: int) -> Owner | None:
    """The rank of a task that this process is, if DCP's ranks are all of the task's."""
    owner = find_owner(is_alone=True)
    if owner is None or owner.place[:2] != (rank, world_size):
        return None
    return owner


def _settings(owner: Owner | None, rank: int, world_size: int) -> CheckpointSettings:
    if owner is None:
        return CheckpointSettings(rank=rank, world_size=world_size)
    _, _, worker_id, task_id = owner.place
    return CheckpointSettings(
        rank=rank, world_size=world_size, worker_id=worker_id, task_id=task_id, before_vote=owner.before_vote
    )


class _Planned(SoloCommit):
    """DCP brings the votes together itself; the attempt is the one that all ranks know."""

    def __init__(self, attempt: SaveAttempt) -> None:
        super().__init__()
        self._attempt = attempt

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        return self._attempt


def _creates_once(store: ObjectStore) -> bool:
    if store.uri not in _creating:
        _creating[store.uri] = honours_create(store, FORMAT_KEY, b'{"format": "%s"}' % FORMAT.encode())
    return _creating[store.uri]


def _decider(owner: Owner | None, store: ObjectStore, attempt: SaveAttempt) -> CommitCoordinator:
    in_task = None if owner is None or owner.place[3] is None else owner.decider(store, attempt.deadline_s)
    return in_task or _Planned(attempt)


def _catalog(store: ObjectStore) -> Catalog:
    owner = find_owner(is_alone=True)
    decider: object = None if owner is None or owner.place[3] is None else owner.decider(store, _DEADLINE_S)
    return Catalog(store, _clock, decider if isinstance(decider, KeepsCatalog) else None)


def _section(owner: Owner | None, name: Literal["checkpoint", "recovery"]) -> AbstractContextManager[object]:
    """Only the training thread's waiting is shown: an asynchronous save runs on another one."""
    if owner is None or threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return owner.section(name)
