"""Whose files these are: W&B's, MLflow's, Neptune's, TensorBoard's or a CSV, and the runs in them."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from strata.errors import DataError, InvalidArgument
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.mlflow_store import find_mlflow_runs, is_mlflow_database, read_mlflow_database
from strata.observatory.transfer.neptune import find_neptune_runs, is_neptune_file
from strata.observatory.transfer.runs import ImportedRun
from strata.observatory.transfer.table import read_csv
from strata.observatory.transfer.tensorboard import find_event_files, read_event_file
from strata.observatory.transfer.wandb_files import find_wandb_files, read_wandb_run

__all__ = ["find_runs"]


def find_runs(path: Path, now_ms: int, broken: Callable[[Path, DataError], None]) -> Iterator[ImportedRun]:
    """Every run below `path`. What cannot be read is told to `broken`, and the others are read."""
    if path.is_file():
        yield from _of_file(path, now_ms)
        return
    found = chain(_wandb_runs(path, broken), find_mlflow_runs(path), find_neptune_runs(path), _event_runs(path))
    first = next(found, None)
    if first is None:
        raise DataError(
            f"nothing in {path} is known here",
            file=str(path),
            hint="W&B's wandb folder, MLflow's mlruns or mlflow.db, an export of Neptune, event files, a CSV.",
        )
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
        yield from find_neptune_runs(path)
    elif "tfevents" in path.name:
        yield from _event_runs(path)
    else:
        raise InvalidArgument(f"{path} is of no kind that is known here", hint="`strata import --help` lists them.")


def _wandb_runs(path: Path, broken: Callable[[Path, DataError], None]) -> Iterator[ImportedRun]:
    for file in find_wandb_files(path):
        try:
            yield read_wandb_run(file)
        except DataError as error:
            broken(file, error)


def _event_runs(path: Path) -> Iterator[ImportedRun]:
    try:
        found = find_event_files(path)
    except DataError:
        return
    for name, files in found.items():
        yield _plain(name, files, read_event_file)


def _plain(name: str, files: list[Path], read: Callable[[Path], Iterator[ImportedPoint]]) -> ImportedRun:
    """A run of which nothing is known but its points. Each file has its own batches, so that one that was imported
    alone is known again."""
    parts = {f"{file.name}/{file.stat().st_size}": partial(read, file) for file in files}
    return ImportedRun(run_id=name, parts=parts)
