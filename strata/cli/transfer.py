"""`strata import` and `strata export`: metrics from elsewhere, and to elsewhere."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from strata.cli.options import DataDir, reach
from strata.client.endpoints import find_observatory
from strata.client.rest import Rest
from strata.client.telemetry import send_batches
from strata.errors import InvalidArgument, ObservatoryUnavailable
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.names import check_name

__all__ = ["add_to"]

_console = Console(highlight=False, soft_wrap=True)


def add_to(app: typer.Typer) -> None:
    app.command("import", rich_help_panel="Metrics")(import_)
    app.command(rich_help_panel="Metrics")(export)


def import_(
    path: Annotated[Path, typer.Argument(help="A CSV file, a TensorBoard event file, or a folder of them.")],
    run: Annotated[str | None, typer.Option("--run", help="The run's name (default: the file's or folder's).")] = None,
    data_dir: DataDir = None,
) -> None:
    """Bring TensorBoard or CSV metrics into Strata. A repeated import changes nothing."""
    settings = reach(data_dir=data_dir)
    if not path.exists():
        raise InvalidArgument(f"there is no {path}")
    target = find_observatory(settings)
    if target is None:
        raise ObservatoryUnavailable("no observatory is known here", hint="Start one with `strata up`.")
    for name, files in _runs(path, run).items():
        count = sum(send_batches(_batches(file, name), target.telemetry, target.access) for file in files)
        _console.print(f"{name}: {count:,} points")


def _runs(path: Path, name: str | None) -> dict[str, list[Path]]:
    from strata.observatory.transfer.tensorboard import find_event_files

    if path.suffix == ".csv":
        return {check_name("run", name or path.stem): [path]}
    found = find_event_files(path)
    if name is None:
        return {check_name("run", run): files for run, files in found.items()}
    if len(found) > 1:
        raise InvalidArgument(f"{path} holds {len(found)} runs", hint="Leave --run out to keep their own names.")
    return {check_name("run", name): next(iter(found.values()))}


def _batches(file: Path, run: str) -> Iterator[Batch]:
    from strata.observatory.transfer.batches import to_batches
    from strata.observatory.transfer.table import read_csv
    from strata.observatory.transfer.tensorboard import read_event_file

    now_ms = time.time_ns() // 1_000_000
    points = read_csv(file, now_ms) if file.suffix == ".csv" else read_event_file(file)
    return to_batches(points, run, f"{file.name}/{file.stat().st_size}")


def export(
    run: Annotated[str, typer.Argument(help="The run's id, from `strata runs`.")],
    file: Annotated[Path, typer.Argument(help="Where to write: .csv or .parquet.")],
    data_dir: DataDir = None,
) -> None:
    """Write a run's raw points to a CSV or Parquet file."""
    kind = file.suffix.removeprefix(".")
    if kind not in ("csv", "parquet"):
        raise InvalidArgument(f"{file} is neither .csv nor .parquet")
    api = Rest(reach(data_dir=data_dir))
    staged = file.with_name(f"{file.name}.part")
    with api.open(f"/api/runs/{quote(run, safe='')}/export?format={kind}") as answer, staged.open("wb") as target:
        shutil.copyfileobj(answer, target)
    staged.replace(file)
    _console.print(f"{file}: {file.stat().st_size:,} bytes")
