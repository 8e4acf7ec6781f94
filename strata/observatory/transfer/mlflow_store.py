"""MLflow's stores, read without mlflow: the folder `mlruns`, and the SQLite file of a tracking server."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from strata.errors import DataError
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.runs import ImportedRun, parsed

__all__ = ["find_mlflow_runs", "is_mlflow_database", "read_mlflow_database"]

_STATES = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "killed"}
_NUMBERS = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}  # as the folder has them
_SQLITE = b"SQLite format 3\0"
_LARGEST = 1.7976931348623157e308  # what the database holds for an infinity


def find_mlflow_runs(path: Path) -> list[ImportedRun]:
    """Of a folder `mlruns`, of one experiment in it, or of one run. Deleted runs are left out."""
    metas = [file for file in sorted(path.rglob("meta.yaml")) if (file.parent / "metrics").is_dir()]
    return [run for meta in metas if (run := _from_folder(meta)) is not None]


def _from_folder(meta: Path) -> ImportedRun | None:
    folder, said = meta.parent, _flat_yaml(meta)
    if said.get("lifecycle_stage", "active") != "active":
        return None
    experiment = _flat_yaml(folder.parent / "meta.yaml")
    files = sorted(file for file in (folder / "metrics").rglob("*") if file.is_file())
    size = sum(file.stat().st_size for file in files)
    run = _run(said.get("run_id") or said.get("run_uuid") or folder.name, _texts(folder / "tags"))
    run.project, run.name = experiment.get("name", ""), run.name or said.get("run_name", "")
    run.config = {name: parsed(text) for name, text in _texts(folder / "params").items()}
    _times(run, said.get("start_time"), said.get("end_time"))
    run.status = _STATES.get(_NUMBERS.get(said.get("status", ""), said.get("status", "")), "")
    run.parts = {f"{folder.name}/{size}": lambda: _file_points(folder / "metrics", files, run.unread)}
    return run


def _file_points(root: Path, files: list[Path], unread: Counter[str]) -> Iterator[ImportedPoint]:
    for file in files:
        metric = file.relative_to(root).as_posix()
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                words = line.split()
                try:
                    yield ImportedPoint(metric, int(words[2]) if len(words) > 2 else 0, int(words[0]), float(words[1]))
                except (ValueError, IndexError):
                    unread[f"lines of {metric} that hold no point"] += 1


def is_mlflow_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def read_mlflow_database(path: Path) -> Iterator[ImportedRun]:
    """Every run that is not deleted. The file is only read, also while a server writes it."""
    with closing(_connect(path)) as database:
        try:
            rows = database.execute(
                "SELECT r.run_uuid, r.name, e.name, r.status, r.start_time, r.end_time FROM runs r "
                "LEFT JOIN experiments e ON e.experiment_id = r.experiment_id "
                "WHERE r.lifecycle_stage = 'active' ORDER BY r.start_time"
            ).fetchall()
        except sqlite3.Error as error:
            raise DataError(f"{path} is no database of MLflow: {error}", file=str(path)) from None
        for run_id, name, experiment, status, started, ended in rows:
            (count,) = database.execute("SELECT count(*) FROM metrics WHERE run_uuid = ?", (run_id,)).fetchone()
            run = _run(run_id, _pairs(database, "tags", run_id))
            run.project, run.name = experiment or "", run.name or name or ""
            run.config = {key: parsed(text) for key, text in _pairs(database, "params", run_id).items()}
            _times(run, started, ended)
            run.status = _STATES.get(status or "", "")
            run.parts = {f"{path.name}/{count}": partial(_rows, path, run_id)}
            yield run


def _rows(path: Path, run_id: str) -> Iterator[ImportedPoint]:
    with closing(_connect(path)) as database:
        found = database.execute(
            "SELECT key, step, timestamp, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY key, step, timestamp",
            (run_id,),
        )
        for metric, step, time_ms, value, is_nan in found:
            yield ImportedPoint(metric, step or 0, time_ms, float("nan") if is_nan else _finite(value))


def _finite(value: float) -> float:
    return float("inf") if value >= _LARGEST else float("-inf") if value <= -_LARGEST else float(value)


def _pairs(database: sqlite3.Connection, table: str, run_id: str) -> dict[str, str]:
    rows = database.execute(f"SELECT key, value FROM {table} WHERE run_uuid = ?", (run_id,))  # noqa: S608  our own words
    return {key: value or "" for key, value in rows}


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _run(run_id: str, tags: Mapping[str, str]) -> ImportedRun:
    """What people wrote as tags are tags here, `key:value`; MLflow's own say the name and the note."""
    own = tuple(f"{key}:{value}"[:100] for key, value in sorted(tags.items()) if not key.startswith("mlflow."))
    name, notes = tags.get("mlflow.runName", ""), tags.get("mlflow.note.content", "")
    return ImportedRun(run_id=run_id, name=name, notes=notes, tags=own)


def _times(run: ImportedRun, started: object, ended: object) -> None:
    run.started_ms, run.ended_ms = (int(str(at)) if str(at or "").isdecimal() else None for at in (started, ended))


def _texts(folder: Path) -> dict[str, str]:
    """One file per name, as MLflow keeps params and tags."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_text(errors="replace") for file in files}


def _flat_yaml(file: Path) -> dict[str, str]:
    """`name: value` per line is all that these files are."""
    if not file.is_file():
        return {}
    pairs = (line.partition(":") for line in file.read_text(errors="replace").splitlines() if not line.startswith(" "))
    return {name: value.strip().strip("'\"") for name, colon, value in pairs if colon}
