"""MLflow's stores, read without mlflow: the folder `mlruns`, and the SQLite file of a tracking server.

What a store holds was written by any client, and a database takes any value in any column: what is no point, no name or
no text is counted, and takes nothing with it.
"""

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from strata.errors import DataError
from strata.observatory.transfer.batches import ImportedPoint
from strata.observatory.transfer.runs import ImportedRun, parsed

__all__ = ["find_mlflow_metas", "is_mlflow_database", "read_mlflow_database", "read_mlflow_folder"]

_STATES = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "killed"}
_NUMBERS = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}  # as the folder has them
_SQLITE = b"SQLite format 3\0"
_LARGEST = 1.7976931348623157e308  # what the database holds for an infinity


def find_mlflow_metas(path: Path) -> list[Path]:
    """The descriptions of runs in a folder `mlruns`, in one experiment of it, or of one run."""
    return [file for file in sorted(path.rglob("meta.yaml")) if (file.parent / "metrics").is_dir()]


def read_mlflow_folder(meta: Path) -> ImportedRun | None:
    """The run beside its description; None when it was deleted."""
    folder, said = meta.parent, _flat_yaml(meta)
    if said.get("lifecycle_stage", "active") != "active":
        return None
    experiment = _flat_yaml(folder.parent / "meta.yaml")
    files = sorted(file for file in (folder / "metrics").rglob("*") if file.is_file())
    size = sum(file.stat().st_size for file in files)
    unread: Counter[str] = Counter()
    run_id = said.get("run_id") or said.get("run_uuid") or folder.name
    run = _run(run_id, _texts(folder / "tags", unread), unread)
    run.project, run.name = experiment.get("name", ""), run.name or said.get("run_name", "")
    run.config = {name: parsed(text) for name, text in _texts(folder / "params", unread).items()}
    _times(run, said.get("start_time"), said.get("end_time"))
    run.status = _STATES.get(_NUMBERS.get(said.get("status", ""), said.get("status", "")), "")
    run.parts = {f"{folder.name}/{size}": lambda: _file_points(folder / "metrics", files, unread)}
    return run


def _file_points(root: Path, files: list[Path], unread: Counter[str]) -> Iterator[ImportedPoint]:
    for file in files:
        metric = file.relative_to(root).as_posix()
        for line in _lines(file, metric, unread):
            words = line.split()
            try:
                yield ImportedPoint(metric, int(words[2]) if len(words) > 2 else 0, int(words[0]), float(words[1]))
            except (ValueError, IndexError):
                unread[f"lines of {metric} that hold no point"] += 1


def _lines(file: Path, metric: str, unread: Counter[str]) -> Iterator[str]:
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from lines
    except OSError as error:
        unread[f"the file of {metric}: {error.strerror}"] += 1


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
            unread: Counter[str] = Counter()
            run = _run(_word(run_id), _pairs(database, "tags", run_id, unread), unread)
            run.project, run.name = _word(experiment), run.name or _word(name)
            run.config = {key: parsed(text) for key, text in _pairs(database, "params", run_id, unread).items()}
            _times(run, started, ended)
            run.status = _STATES.get(_word(status), "")
            run.parts = {f"{path.name}/{_count(database, run_id)}": partial(_rows, path, run_id, unread)}
            yield run


def _count(database: sqlite3.Connection, run_id: object) -> int:
    """Of its points; who reads them says what is wrong when that fails."""
    try:
        return int(database.execute("SELECT count(*) FROM metrics WHERE run_uuid = ?", (run_id,)).fetchone()[0])
    except sqlite3.Error:
        return 0


def _rows(path: Path, run_id: object, unread: Counter[str]) -> Iterator[ImportedPoint]:
    with closing(_connect(path)) as database:
        try:
            found = database.execute(
                "SELECT key, step, timestamp, value, is_nan FROM metrics WHERE run_uuid = ? "
                "ORDER BY key, step, timestamp",
                (run_id,),
            )
            for metric, step, time_ms, value, is_nan in found:
                number = float("nan") if is_nan else value
                if all(isinstance(whole, int | None) for whole in (step, time_ms)) and isinstance(number, int | float):
                    number = math.copysign(math.inf, number) if abs(number) >= _LARGEST else float(number)
                    yield ImportedPoint(_word(metric), step or 0, time_ms or 0, number)
                else:
                    unread[f"rows of {_word(metric)[:80] or 'no metric'} that hold no point"] += 1
        except sqlite3.Error as error:
            raise DataError(f"{path} cannot be read any further: {error}", file=str(path)) from None


def _pairs(database: sqlite3.Connection, table: str, run_id: object, unread: Counter[str]) -> dict[str, str]:
    try:
        rows = database.execute(f"SELECT key, value FROM {table} WHERE run_uuid = ?", (run_id,)).fetchall()  # noqa: S608  our own words
    except sqlite3.Error as error:
        unread[f"{table}: {error}"] += 1
        return {}
    if nameless := sum(key is None for key, _ in rows):
        unread[f"{table} without a name"] += nameless
    return {_word(key): _word(value) for key, value in rows if key is not None}


def _word(value: object) -> str:
    """Whatever a column holds as text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    database.text_factory = lambda text: text.decode(errors="replace")  # not all that is called text is UTF-8
    return database


def _run(run_id: str, tags: Mapping[str, str], unread: Counter[str]) -> ImportedRun:
    """What people wrote as tags are tags here, `key:value`; MLflow's own say the name and the note."""
    own = tuple(f"{key}:{value}" for key, value in sorted(tags.items()) if not key.startswith("mlflow."))
    name, notes = tags.get("mlflow.runName", ""), tags.get("mlflow.note.content", "")
    return ImportedRun(run_id=run_id, name=name, notes=notes, tags=own, unread=unread)


def _times(run: ImportedRun, started: object, ended: object) -> None:
    run.started_ms, run.ended_ms = (int(str(at)) if str(at or "").isdecimal() else None for at in (started, ended))


def _texts(folder: Path, unread: Counter[str]) -> dict[str, str]:
    """One file per name, as MLflow keeps params and tags."""
    found = {}
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        try:
            found[file.relative_to(folder).as_posix()] = file.read_text(errors="replace")
        except OSError as error:
            unread[f"{folder.name}/{file.name}: {error.strerror}"] += 1
    return found


def _flat_yaml(file: Path) -> dict[str, str]:
    """`name: value` per line is all that these files are."""
    if not file.is_file():
        return {}
    pairs = (line.partition(":") for line in file.read_text(errors="replace").splitlines() if not line.startswith(" "))
    return {name: value.strip().strip("'\"") for name, colon, value in pairs if colon}
