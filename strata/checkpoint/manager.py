"""CheckpointManager: what a training script uses to save, find and load its state. It never loads a pickle."""

import builtins
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Literal, Self, Unpack, cast, overload

from typing_extensions import TypeVar

from strata.checkpoint.catalog import Catalog
from strata.checkpoint.codec import check_json, encode
from strata.checkpoint.commit import CommitCoordinator, KeepsCatalog, SoloCommit
from strata.checkpoint.export import Exported, export_folder
from strata.checkpoint.fork import open_base, own_store
from strata.checkpoint.handle import SaveHandle
from strata.checkpoint.image import plan_image
from strata.checkpoint.layout import check_whole
from strata.checkpoint.manifest import CommitManifest
from strata.checkpoint.objects import objects_in
from strata.checkpoint.options import CheckpointOptions, CheckpointSettings
from strata.checkpoint.owner import find_owner, owned
from strata.checkpoint.pipeline import SavePipeline
from strata.checkpoint.reader import BlockOf, CheckpointReader, LoadRequest, Progress
from strata.checkpoint.restorer import Agree, Recovery, Restorer
from strata.checkpoint.retention import RetentionPolicy, best_step
from strata.checkpoint.saver import SaveJob, info_of
from strata.checkpoint.spreading import Exchange, HalfRead, exchanged, spread
from strata.checkpoint.writers import Until, Writers, later_in
from strata.errors import (
    CheckpointNotFound,
    CorruptCheckpoint,
    InvalidArgument,
    InvalidConfig,
)
from strata.storage.base import ObjectStore
from strata.storage.uri import open_store
from strata.types.checkpoints import CheckpointInfo

__all__ = ["CheckpointManager"]

_log = logging.getLogger(__name__)

Where = str | os.PathLike[str] | ObjectStore
# What `save` gives back: the committed checkpoint, or with async_save=True the handle of a save that goes on.
Saved = TypeVar("Saved", bound=CheckpointInfo | SaveHandle, default=CheckpointInfo)


class CheckpointManager(Generic[Saved]):
    """Saves and loads checkpoints under one folder or bucket prefix.

    A save is visible only when it is complete and durable on every rank; the newest complete one is found from the
    store alone, after any crash. Saves of one manager are written one after the other. Use it as a context manager,
    or call `close`.

    In a task (and after `strata.init` under torchrun or Slurm) a manager is its rank's: all ranks save one checkpoint,
    which exists when all of them are in it. With rank=0, world_size=1 it saves alone there, too.
    """

    @overload
    def __init__(
        self: "CheckpointManager[SaveHandle]",
        path: Where,
        *,
        async_save: Literal[True],
        keep_count: int | None = ...,
        keep_every: int | None = ...,
        keep_best: tuple[str, str] | None = ...,
        coordinator: CommitCoordinator | None = ...,
        **options: Unpack[CheckpointOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: "CheckpointManager[CheckpointInfo]",
        path: Where,
        *,
        async_save: Literal[False] = ...,
        keep_count: int | None = ...,
        keep_every: int | None = ...,
        keep_best: tuple[str, str] | None = ...,
        coordinator: CommitCoordinator | None = ...,
        **options: Unpack[CheckpointOptions],
    ) -> None: ...

    def __init__(
        self,
        path: Where,
        *,
        async_save: bool = False,
        keep_count: int | None = 5,
        keep_every: int | None = None,
        keep_best: tuple[str, str] | None = None,
        coordinator: CommitCoordinator | None = None,
        **options: Unpack[CheckpointOptions],
    ) -> None:
        unknown = set(options) - set(CheckpointSettings.__dataclass_fields__)
        if unknown:
            allowed = ", ".join(("async_save", *CheckpointSettings.__dataclass_fields__))
            raise InvalidConfig(f"CheckpointManager has no option {sorted(unknown)}", hint=f"Allowed: {allowed}.")
        self._policy = RetentionPolicy(keep_count=keep_count, keep_every=keep_every, keep_best=keep_best)
        given = coordinator is not None or "rank" in options or "world_size" in options
        self._owner = find_owner(is_alone=given)
        self._settings = settings = CheckpointSettings(**owned(self._owner, options, given=given))
        if not isinstance(path, str | os.PathLike) and not hasattr(path, "uri"):
            raise InvalidArgument(f"the checkpoint path is {path!r:.80}", hint="Give a folder, or s3://bucket/run.")
        forking, opened = self._owner.forking if self._owner else None, not isinstance(path, str | os.PathLike)
        store = open_store(path, settings.storage) if isinstance(path, str | os.PathLike) else path
        self._store = own_store(store, forking, opened=opened, storage=settings.storage)
        self.path = self._store.uri
        if coordinator is None and self._owner is not None and not given:
            coordinator = self._owner.decider(self._store, settings.deadline_s)
        if settings.world_size > 1 and coordinator is None:
            raise InvalidConfig(
                f"world_size is {settings.world_size} but there is no coordinator to agree on a commit",
                hint="Pass coordinator=…; on a shared folder or bucket, strata.checkpoint.StoreCommit needs no server.",
            )
        self._async_save = async_save
        self._agree = self._owner.agree if self._owner and not given and settings.world_size > 1 else None
        decider = coordinator or SoloCommit(deadline_s=settings.deadline_s)
        keeper = decider if isinstance(decider, KeepsCatalog) else None
        self._catalog = Catalog(self._store, settings.clock, keeper)
        self._base = open_base(self._store, forking, settings.clock, settings.storage)
        self._restorer = Restorer(self._store, self._catalog, self._base)
        self._pipeline = SavePipeline(self._store, self._catalog, decider, settings, self._policy)
        self._writers = Writers(self._pipeline.stage)

    @property
    def conditional_writes(self) -> bool | None:
        """Whether the store refuses to create an object twice; None before the first save has asked it."""
        return self._pipeline.conditional_writes

    # Saving

    def save(
        self,
        state: Any,
        step: int,
        epoch: int = 0,
        *,
        metadata: Mapping[str, Any] | None = None,
        data_state: Any = None,
        overwrite: bool = False,
        share: bool = False,
    ) -> Saved:
        """Writes bytes, or a nested dict of arrays, and returns when the checkpoint is durable and committed on all
        ranks. With `async_save=True` it is `save_async`.

        The arrays must not change meanwhile (other threads!); nothing is copied. With `share` an array that all ranks
        have alike is written once, by one of them; that is a collective call.
        """
        job = self._job(state, step, epoch, metadata=metadata, data_state=data_state, overwrite=overwrite, share=share)
        with self._section("checkpoint"):
            if self._async_save:
                return cast(Saved, self._pipeline.submit_staged(job))
            info = self._pipeline.submit(job).result()
        assert info is not None  # only an asynchronous save can be skipped
        return cast(Saved, info)

    def save_async(
        self,
        state: Any,
        step: int,
        epoch: int = 0,
        *,
        metadata: Mapping[str, Any] | None = None,
        data_state: Any = None,
        overwrite: bool = False,
        share: bool = False,
        until: Until = None,
    ) -> SaveHandle:
        """Copies the state and returns; the rest happens behind the training loop. The arrays may change at once.
        Bytes cannot change, so they are not even copied.

        With `until=optimizer` (of torch; a list of several) you say that until its next step nothing writes to its
        parameters: what lies in this host's memory of them, and of what it keeps, is copied behind the loop, and what
        is left of that before the step. With `until="stage"` you say it of all arrays until `handle.stage()`, which you
        call before you change one.
        """
        job = self._job(state, step, epoch, metadata=metadata, data_state=data_state, overwrite=overwrite, share=share)
        with self._section("checkpoint"):
            later = later_in(job.image, until)
            self._writers.watch(until)
            return self._pipeline.submit_staged(job, later)

    def wait(self, timeout: float | None = None) -> None:
        """Returns when every save so far has ended and old ones are removed; raises the first failure not yet seen."""
        self._pipeline.wait(timeout)

    def check(self) -> None:
        """Raises the first failure of a background save that nobody has seen yet, without waiting."""
        self._pipeline.raise_failure()

    def close(self) -> None:
        """Finishes what is under way, frees the staging memory, then raises like `wait`. May be called again."""
        self._pipeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.close()
        except Exception as failure:  # whatever a save died of: what ended the block is what its caller handles
            if error is None:
                raise
            _log.error("a background save failed as well: %s", failure)

    # Finding

    def list(self) -> list[CheckpointInfo]:
        """All committed checkpoints, newest first."""
        pins = self._catalog.pins()
        return [self._info(commit, pins) for commit in self._catalog.all_commits()]

    def steps(self) -> builtins.list[int]:
        """Every step that somebody began to save here, newest first: committed, damaged, or given up."""
        return self._catalog.steps()

    def get_latest(self, *, deep: bool = False) -> CheckpointInfo | None:
        """The newest checkpoint whose every object is there with its size (of a fork at last the one it begins with),
        or None. Needs the store only.

        With `deep` its bytes are checked too, and a damaged one is passed over.
        """
        for commit in self._catalog.complete():
            try:
                return self.verify(commit.step) if deep else self._info(commit, self._catalog.pins())
            except CorruptCheckpoint as error:
                _log.warning("%s; looking for an older checkpoint", error)
        return None if self._base is None else info_of(self._base.commit(), self._base.uri)

    def get_best(self) -> CheckpointInfo | None:
        """The one with the best value of the metric that `keep_best` names, as it was saved with
        `metadata={"metrics": {name: value}}`; None when none was."""
        if self._policy.keep_best is None:
            raise InvalidArgument("nothing says what is best", hint='Give keep_best=("val/loss", "min").')
        metadata = {commit.step: commit.metadata for commit in self._catalog.all_commits()}
        best = best_step(metadata, self._policy.keep_best)
        return None if best is None else self.show(best)

    def show(self, step: int) -> CheckpointInfo:
        return self._info(self._catalog.commit_of(step), self._catalog.pins())

    def verify(self, step: int, *, deep: bool = True, progress: Progress | None = None) -> CheckpointInfo:
        """Checks sizes and, when `deep`, every byte against its hash; raises CorruptCheckpoint that names what is
        wrong."""
        return self._info(self._catalog.verify(step, deep=deep, progress=progress), self._catalog.pins())

    def pin(self, step: int) -> None:
        """Keeps a step whatever retention says."""
        self._catalog.pin(step)

    def unpin(self, step: int) -> None:
        """A step that is neither pinned nor there is an error, as for `pin`; a pin may outlive its step."""
        if step not in self._catalog.pins():
            self._catalog.commit_of(step)
        self._catalog.unpin(step)

    def remove(self, step: int) -> None:
        """Deletes a committed step; a pinned one is refused."""
        self._catalog.commit_of(step)
        if step in self._catalog.pins():
            raise InvalidArgument(f"step {step} is pinned", hint="Unpin it first.")
        self._catalog.remove(step, "removed by hand")
        self._catalog.tell_removed()

    # Loading

    def load(
        self,
        step: int | None = None,
        *,
        names: Sequence[str] | None = None,
        into: Any = None,
        rank: int | None = None,
        world_size: int | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Gives back what was saved: of `step`, or of the newest checkpoint whose bytes are good (older ones are
        tried when not). `names` loads only some arrays, rank and world_size cut Sharded arrays anew. `into` is filled
        in place: a model or an optimizer, a dict of such by name, or a dict of arrays by their names."""
        self._pipeline.stage()  # what is loaded may be written into arrays that a save still copies
        rank = self._settings.rank if rank is None else rank
        world_size = self._settings.world_size if world_size is None else world_size
        objects = objects_in(into)
        arrays = into if objects is None else None
        request = LoadRequest(rank=rank, world_size=world_size, names=names, into=arrays, objects=objects)
        request = replace(request, verify=self._settings.verify_on_load, progress=progress)
        with self._section("recovery"):
            state = self._load(step, request)
        for name, part in (objects or {}).items():
            part.load_state_dict(state[name])
        return state if objects is None else into

    def export(self, target: str | os.PathLike[str], step: int | None = None, *, part: str | None = None) -> Exported:
        """Writes the model of a checkpoint (the newest), or the arrays below `part`, as a Hugging Face folder."""
        commit = next(self._catalog.complete(), None) if step is None else self._catalog.commit_of(step)
        if commit is None:
            raise self._nothing()
        with self._catalog.reading(commit.step):
            return export_folder(self.open(commit.step), open_store(target), part=part)

    def _nothing(self) -> CheckpointNotFound:
        return CheckpointNotFound(f"no checkpoint in {self._store.uri}", hint="Nothing was saved there yet.")

    def _load(self, step: int | None, request: LoadRequest) -> Any:
        if step is not None:
            return self._restorer.load_step(step, request)
        found = self._restorer.newest_good(request)
        if found is None:
            raise self._nothing()
        return found.state

    def open(self, step: int) -> CheckpointReader:
        """The committed checkpoint of `step` itself, for loads that `load` has no words for."""
        return self._restorer.open(step)

    def recover(
        self,
        agree: Agree | None = None,
        *,
        share: bool = False,
        block_of: BlockOf | None = None,
        progress: Progress | None = None,
    ) -> Recovery | None:
        """latest → load → data cursor in one call; None when nothing was ever saved. With `share` what was saved so is
        read by one rank and sent to the others; `block_of` says which parts of sharded arrays this rank has.

        In a task it is collective: a rank that found a newer one than somebody else goes back, so that all resume from
        one step. Ranks that were given by hand pass `agree` for that: it gets the step that this rank could load (-1:
        none) and returns every rank's, as an all-gather does.
        """
        self._pipeline.stage()  # as in load
        rank, world_size = self._settings.rank, self._settings.world_size
        exchange = self._exchange if share else None
        request = LoadRequest(
            rank=rank, world_size=world_size, progress=progress, half=exchange is not None, block_of=block_of
        )
        agree = agree or self._agree
        with self._section("recovery"):
            found = self._restorer.newest_good(request) if agree is None else self._restorer.agreed(request, agree)
            if found is None:
                return None
            state = found.state
            if exchange is not None and isinstance(state, HalfRead):
                state = exchanged(state, rank, world_size, exchange)
        data_state = found.commit.entry(rank % found.commit.world_size).data_state
        info = self._info(found.commit, frozenset())
        return Recovery(info=info, state=state, data_state=data_state, world_size=found.commit.world_size)

    def _job(
        self,
        state: Any,
        step: int,
        epoch: int,
        *,
        metadata: Mapping[str, Any] | None,
        data_state: Any,
        overwrite: bool,
        share: bool,
    ) -> SaveJob:
        self._pipeline.raise_failure()
        if self._owner is not None and self._owner.forking is not None:
            self._owner.forking.check_found()
        step, epoch = check_whole("step", step), check_whole("epoch", epoch)
        tree, arrays = encode(state)
        exchange = self._exchange if share else None
        if exchange is not None:
            tree, arrays = spread(tree, arrays, self._settings.rank, self._settings.world_size, exchange)
        return SaveJob(
            step=step,
            epoch=epoch,
            image=plan_image(arrays),
            buffers=(),
            tree=tree,
            metadata=check_json("metadata", metadata or {}),
            data_state=check_json("data_state", data_state),
            overwrite=overwrite,
            started_at=self._settings.clock.monotonic(),
        )

    @property
    def _exchange(self) -> Exchange | None:
        return None if self._owner is None or self._agree is None else self._owner.exchange

    def _section(self, name: Literal["checkpoint", "recovery"]) -> AbstractContextManager[object]:
        return nullcontext() if self._owner is None else self._owner.section(name)

    def _info(self, commit: CommitManifest, pins: frozenset[int]) -> CheckpointInfo:
        info = replace(info_of(commit, self._store.uri), pinned=commit.step in pins)
        check = self._catalog.check_of(commit)
        return info if check is None else info.checked(check.damage, check.at)
