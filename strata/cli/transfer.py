"""`strata import` and `strata export`: metrics from elsewhere, and to elsewhere."""

import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.status import Status

from strata.cli import ids
from strata.cli.options import DataDir, reach
from strata.client.endpoints import find_observatory
from strata.client.rest import Rest, path_part
from strata.client.telemetry import send_batches
from strata.errors import (
    Busy,
    DataError,
    InvalidArgument,
    NotFound,
    ObservatoryUnavailable,
    StoreUnavailable,
    StrataError,
)
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import SeriesKey
from strata.types.names import check_name

if TYPE_CHECKING:
    from strata.observatory.transfer.batches import Had
    from strata.observatory.transfer.runs import ImportedRun

__all__ = ["add_to"]

_PER_PAGE = 10_000  # series: the most that one question may ask for
_PATIENCE_S = 60.0
_MAX_SAID = 50
_console = Console(highlight=False, soft_wrap=True)
_stderr = Console(stderr=True, highlight=False, soft_wrap=True)
_IMPORT_HELP = (
    "W&B's `wandb` folder or a run-*.wandb file, MLflow's `mlruns` folder or SQLite file, an export of Neptune, "
    "TensorBoard event files, or a CSV."
)


def add_to(app: typer.Typer) -> None:
    app.command("import")(import_)
    app.command()(export)


def import_(
    path: Annotated[Path, typer.Argument(help=_IMPORT_HELP)],
    run: Annotated[str | None, typer.Option("--run", help="The run's name (default: its own, or the file's).")] = None,
    data_dir: DataDir = None,
) -> None:
    """Bring runs of W&B, MLflow, Neptune, TensorBoard or a CSV into Strata. A repeated import brings what is new."""
    from strata.observatory.transfer.find import find_runs
    from strata.observatory.transfer.runs import run_batches

    settings = reach(data_dir=data_dir)
    if not path.exists():
        raise InvalidArgument(f"there is no {path}")
    target = find_observatory(settings)
    if target is None:
        raise ObservatoryUnavailable("no observatory is known here", hint="Start one with `strata up`.")
    rest, failed = Rest(settings), Counter[str]()

    def broken(what: object, error: StrataError) -> None:
        failed[str(what)] += 1
        hint = f" ({error.hint})" if error.hint else ""
        _stderr.print(f"{what}: {error.message}{hint}", markup=False)

    runs = find_runs(path, time.time_ns() // 1_000_000, broken)
    for found in runs if run is None else [_only(runs, path, run)]:
        try:
            check_name("run", found.run_id)
            with _stderr.status(found.run_id) as status:
                had, said = _had(rest, found.run_id)
                end_at_ms = None if said else time.time_ns() // 1_000_000
                batches = run_batches(found, had, end_at_ms=end_at_ms)
                count = send_batches(_told(batches, found.run_id, status), target.telemetry, target.access)
            _console.print(f"{found.run_id}: {count:,} points")
        except (DataError, InvalidArgument) as error:
            broken(found.run_id, error)
        for what, times in list(found.unread.items())[:_MAX_SAID]:
            _stderr.print(f"{found.run_id}: not read: {what} ({times:,})", markup=False)
        if len(found.unread) > _MAX_SAID:
            _stderr.print(f"{found.run_id}: not read: {len(found.unread) - _MAX_SAID:,} kinds of things more")
    if failed:
        raise typer.Exit(1)


def _had(rest: Rest, run_id: str) -> "tuple[dict[SeriesKey, Had], str | None]":
    """How many points of each series there are: a file that has grown brings only what is new. And how the run stands
    by its own word, if it has one: a script may be logging to it. Waits until the store holds all that was accepted; of
    a Strata that has just been started it comes seconds after the page."""
    ends_at = time.monotonic() + _PATIENCE_S
    while True:
        try:
            known = rest.get(f"/api/runs/{path_part(run_id)}/info")
        except NotFound:
            known = {"num_points": 0, "status": None}
        with contextlib.suppress(StoreUnavailable, Busy):
            had = _stored(rest, run_id)
            if sum(stored.points for stored in had.values()) >= int(known["num_points"]):
                return had, known["status"]
        if time.monotonic() > ends_at:
            raise StoreUnavailable(f"the metric store does not have all points of {run_id} yet", hint="Try again.")
        time.sleep(0.5)


def _stored(rest: Rest, run_id: str) -> "dict[SeriesKey, Had]":
    from strata.observatory.transfer.batches import Had  # only for those who import

    asked = f"""SELECT metric, host, rank, device, count() AS points, sum(step) AS steps FROM metric_points
                WHERE run_id = '{run_id}' GROUP BY metric, host, rank, device ORDER BY metric, host, rank, device"""  # noqa: S608 - it was checked
    had: dict[SeriesKey, Had] = {}
    while True:
        answer = rest.post("/api/sql", {"query": f"{asked} LIMIT {_PER_PAGE} OFFSET {len(had)}"})
        for *series, points, steps in answer["rows"]:
            had[SeriesKey(run_id, *series)] = Had(int(points), int(steps))
        if len(answer["rows"]) < _PER_PAGE:
            return had


def _only(runs: "Iterator[ImportedRun]", path: Path, name: str) -> "ImportedRun":
    """The one run there is, under another name."""
    found = list(runs)
    if len(found) != 1:
        raise InvalidArgument(f"{path} holds {len(found)} runs", hint="Leave --run out to keep their own names.")
    found[0].run_id = name
    return found[0]


def _told(batches: Iterator[Batch], name: str, status: Status) -> Iterator[Batch]:
    """The same; the terminal shows how many points of the run have gone so far."""
    sent = 0
    for batch in batches:
        yield batch
        sent += len(batch.points.step)
        status.update(f"{name}: {sent:,} points")


def export(
    run: Annotated[str, typer.Argument(help="The run's id, from `strata runs`.", callback=ids.run_id)],
    file: Annotated[Path, typer.Argument(help="Where to write: .csv or .parquet.")],
    data_dir: DataDir = None,
) -> None:
    """Write a run's raw points to a CSV or Parquet file."""
    kind = file.suffix.removeprefix(".")
    if kind not in ("csv", "parquet"):
        raise InvalidArgument(f"{file} is neither .csv nor .parquet")
    api = Rest(reach(data_dir=data_dir))
    staged = file.with_name(f"{file.name}.part")
    try:
        with api.open(f"/api/runs/{path_part(run)}/export?format={kind}") as answer, staged.open("wb") as target:
            shutil.copyfileobj(answer, target)
        staged.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            staged.unlink()
        raise InvalidArgument(f"{file} cannot be written: {error.strerror}", hint="Give another place.") from None
    _console.print(f"{file}: {file.stat().st_size:,} bytes")
