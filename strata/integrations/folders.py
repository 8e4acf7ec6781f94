"""Checkpoint folders that a framework writes and reads by itself, kept in Strata's store: verified, behind the
training, and one checkpoint of all ranks. Each rank brings its own files; nobody here looks into a file.
"""

import os
import shutil
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from strata.checkpoint import CheckpointManager
from strata.worker.environment import checkpoint_path
from strata.worker.run import current_run

__all__ = ["FolderStore"]


class Meet(Protocol):
    """Waits for all ranks, as a framework's barrier does."""

    def __call__(self) -> object: ...


class FolderStore:
    """`save` copies files, `restore` lays out the newest good checkpoint for this rank. Both are for all ranks."""

    def __init__(self, path: str | PathLike[str] | None = None, *, keep_count: int | None = 5) -> None:
        self._run = run = current_run()
        self._manager = CheckpointManager(
            fspath(path) if path is not None else checkpoint_path(run.place), keep_count=keep_count
        )
        self._home = run.place.data_dir / "restored" / f"{run.id}-{run.place.attempt}"
        self._saved = -1

    def save(self, folder: Path, files: Iterable[Path], step: int, epoch: int = 0) -> None:
        """This rank's files of a step. They may go when it returns. A step that is there is not saved again."""
        if step == self._saved:
            return
        self._saved = step
        state = {path.relative_to(folder).as_posix(): _bytes_of(path) for path in files}
        self._manager.save_async(state, step, epoch)

    def restore(self, meet: Meet) -> tuple[int, Path] | None:
        """The step, and a folder with the files of rank 0 and, above them, this rank's own; None when there is no
        checkpoint. The ranks of a host share one copy."""
        found = self._manager.recover()
        if found is None:
            return None
        step, rank = found.info.step, self._run.rank
        whole, own = self._home / "whole", self._home / f"rank-{rank}"
        if self._run.place.local_rank == 0:
            shutil.rmtree(self._home, ignore_errors=True)
            _write(whole, found.state if rank == 0 else self._manager.load(step, rank=0))
        meet()
        shutil.copytree(whole, own, copy_function=os.link)
        if 0 < rank < found.world_size:  # one that was not there then has no files of its own
            _write(own, found.state)
        self._saved = step
        return step, own

    def clear(self) -> None:
        """Removes this rank's restored folder; the shared copy goes with the last one."""
        shutil.rmtree(self._home / f"rank-{self._run.rank}", ignore_errors=True)
        if not any(self._home.glob("rank-*")):
            shutil.rmtree(self._home, ignore_errors=True)

    def close(self) -> None:
        """Returns when all saves are durable, or raises what went wrong."""
        self._manager.close()


def _bytes_of(path: Path) -> Any:
    """Mapped, so that the copy which the save makes is the only one."""
    return np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, dtype=np.uint8)


def _write(folder: Path, files: dict[str, Any]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link to the shared copy
        path.write_bytes(memoryview(data))
