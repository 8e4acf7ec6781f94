"""Whose files these are: W&B's, MLflow's, Neptune's, TensorBoard's or a CSV, and the runs in them."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from strata.errors import DataError, InvalidArgument
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.mlflow_store import (
    find_mlflow_metas,
    is_mlflow_database,
    read_mlflow_database,
    read_mlflow_folder,
)
from strata.observatory.transfer.neptune import find_neptune_folders, is_neptune_file, read_neptune_runs
from strata.observatory.transfer.runs import ImportedRun
from strata.observatory.transfer.table import read_csv
from strata.observatory.transfer.tensorboard import find_event_files, read_event_file
from strata.observatory.transfer.wandb_files import find_wandb_files, read_wandb_run
from strata.types.names import name_of

__all__ = ["find_runs"]

Broken = Callable[[Path, DataError], None]
Read = Callable[[Path, Counter[str]], Iterator[ImportedPoint]]
_Found = TypeVar("_Found")


def find_runs(path: Path, now_ms: int, broken: Broken) -> Iterator[ImportedRun]:
    """Every run below `path`. What cannot be read is told to `broken`, and the others are read."""
    if path.is_file():
        try:
            yield from _of_file(path, now_ms)
        except OSError as error:
            raise _unreadable(path, error) from None
        return
    failed: list[Path] = []

    def noted(file: Path, error: DataError) -> None:
        failed.append(file)
        broken(file, error)

    found = chain(_wandb_runs(path, noted), _mlflow_runs(path, noted), _neptune_runs(path, noted), _event_runs(path))
    first = next(found, None)
    if first is None and not failed:
        raise DataError(
            f"nothing in {path} is known here",
            file=str(path),
            hint="W&B's wandb folder, MLflow's mlruns or mlflow.db, an export of Neptune, event files, a CSV.",
        )
    if first is not None:
        yield first
    yield from found


def _of_file(path: Path, now_ms: int) -> Iterator[ImportedRun]:
    if path.suffix == ".csv":
        yield _plain(path.stem, [path], partial(read_csv, now_ms=now_ms))
    elif path.suffix == ".wandb":
        yield read_wandb_run(path)
    elif is_mlflow_database(path):
        yield from read_mlflow_database(path)
    elif is_neptune_file(path):
        yield from read_neptune_runs([path])
    elif "tfevents" in path.name:
        yield from _event_runs(path)
    else:
        raise InvalidArgument(f"{path} is of no kind that is known here", hint="`strata import --help` lists them.")


def _wandb_runs(path: Path, broken: Broken) -> Iterator[ImportedRun]:
    """A run that was resumed has a file for each time: in order of their folders, which are named by the time."""
    runs: dict[str, ImportedRun] = {}
    for file in find_wandb_files(path):
        run = _tried(file, partial(read_wandb_run, file), broken)
        if run is not None:
            before = runs.get(run.run_id)
            runs[run.run_id] = run if before is None else _resumed(before, run)
    yield from runs.values()


def _resumed(before: ImportedRun, run: ImportedRun) -> ImportedRun:
    parts = {f"{name}+{len(before.parts)}": points for name, points in run.parts.items()}
    run.parts = {**before.parts, **parts}
    run.config, run.summary = {**before.config, **run.config}, {**before.summary, **run.summary}
    run.started_ms = before.started_ms or run.started_ms
    run.unread.update(before.unread)
    return run


def _mlflow_runs(path: Path, broken: Broken) -> Iterator[ImportedRun]:
    for meta in find_mlflow_metas(path):
        run = _tried(meta, partial(read_mlflow_folder, meta), broken)
        if run is not None:
            yield run


def _neptune_runs(path: Path, broken: Broken) -> Iterator[ImportedRun]:
    for files in find_neptune_folders(path):
        ours = [file for file in files if _tried(file, partial(is_neptune_file, file), broken)]
        if ours:
            yield from _tried(ours[0], partial(list, read_neptune_runs(ours)), broken) or ()


def _tried(file: Path, read: Callable[[], _Found], broken: Broken) -> _Found | None:
    """What `read` gives; None of a file that cannot be read, and `broken` hears of it."""
    try:
        return read()
    except DataError as error:
        broken(file, error)
    except OSError as error:
        broken(file, _unreadable(file, error))
    return None


def _unreadable(file: Path, error: OSError) -> DataError:
    return DataError(f"{file} cannot be read: {error.strerror or error}", file=str(file))


def _event_runs(path: Path) -> Iterator[ImportedRun]:
    for name, files in find_event_files(path).items():
        yield _plain(name, files, read_event_file)


def _plain(name: str, files: list[Path], read: Read) -> ImportedRun:
    """A run of which nothing is known but its points, and what people call its folder: lr=0.1,bs=32. Each file has its
    own batches, so that one that was imported alone is known again."""
    run_id = name_of(name, "import")
    run = ImportedRun(run_id=run_id, name=name if name != run_id else "")
    run.parts = {f"{file.name}/{file.stat().st_size}": partial(read, file, run.unread) for file in files}
    return run
