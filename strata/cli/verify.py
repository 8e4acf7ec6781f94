"""`strata checkpoints verify`: every byte of checkpoints against its hash, and the running cluster hears of it."""

import os.path
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from strata.checkpoint import CheckpointManager
from strata.checkpoint.layout import parse_step, step_path
from strata.cli.cluster import cluster_rows
from strata.cli.options import DataDir, reach
from strata.cli.show import size
from strata.client.channel import Channel
from strata.client.checkpoints import report_check
from strata.client.endpoints import find_cluster
from strata.client.rest import Rest
from strata.config import Settings
from strata.errors import CheckpointNotFound, CorruptCheckpoint, StrataError

__all__ = ["verify"]

_console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A step of a store; all its steps when none is named."""

    root: str
    step: int | None = None


def verify(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|ID",
            help="A folder or bucket (s3://bucket/run), one checkpoint's own folder in it, or the id of one that the "
            "running cluster knows. Without it: all that the cluster knows.",
        ),
    ] = None,
    step: Annotated[int | None, typer.Argument(help="One step of PATH; all of them without it.")] = None,
    shallow: Annotated[bool, typer.Option("--shallow", help="Only sizes, not every byte.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Check checkpoints against their hashes, byte by byte.

    Prints a line per checkpoint; each damaged one is named with its file and what is wrong, and the exit code is 1. A
    running cluster hears of it: the dashboard shows what is verified, and a recovery passes over what is damaged.
    """
    settings = reach(data_dir=data_dir)
    results = [good for target in _targets(settings, what, step) for good in _check(settings, target, shallow=shallow)]
    if what is not None and not results:
        raise CheckpointNotFound(f"there is no complete checkpoint in {what}", hint="Give the folder that holds them.")
    damaged = results.count(False)
    _console.print(f"{len(results) - damaged} good, {damaged} damaged")
    if damaged:
        raise typer.Exit(1)


def _targets(settings: Settings, what: str | None, step: int | None) -> list[_Target]:
    # Not Path: an empty one is this folder, and one that is too long raises.
    if what is not None and ("://" in what or os.path.isdir(what)):  # noqa: PTH112
        return [_target_of(what) if step is None else _Target(root=what, step=step)]
    known = [one for one in cluster_rows(Rest(settings), "/api/checkpoints") if one["status"] == "completed"]
    wanted = [_target_of(one["path"]) for one in known if what in (None, one["id"])]
    if what is not None and not wanted:
        raise CheckpointNotFound(
            f"{what!r} is no folder here, and no complete checkpoint of the cluster at {Rest(settings).url}",
            hint="`strata checkpoints --json` lists the ids.",
        )
    return wanted


def _target_of(path: str) -> _Target:
    root, _, name = path.rstrip("/").rpartition("/")
    step = parse_step(name)
    return _Target(root=root, step=step) if root and step is not None else _Target(root=path)


def _check(settings: Settings, target: _Target, *, shallow: bool) -> list[bool]:
    """Whether each is good, newest first."""
    results = []
    with CheckpointManager(target.root, rank=0, world_size=1) as manager:
        for step in manager.steps() if target.step is None else [target.step]:
            try:
                results.append(_check_step(settings, manager, step, shallow=shallow))
            except CheckpointNotFound:
                if target.step is not None:
                    raise  # else a save that never came to its commit
    return results


def _check_step(settings: Settings, manager: CheckpointManager, step: int, *, shallow: bool) -> bool:
    name, path, damage = "", step_path(manager.path, step), ""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        info = manager.show(step)
        name, path = info.id, info.path
        with Progress(*columns, console=_console, transient=True, disable=not _console.is_terminal) as progress:
            bar = progress.add_task(f"step {step}", total=info.size_bytes)
            manager.verify(step, deep=not shallow, progress=lambda done, _: progress.update(bar, completed=done))
        shown = "sizes are right" if shallow else "good"
        _console.print(f"[green]ok[/]       step {step}  {size(info.size_bytes)}  {path}: {shown}")
    except CorruptCheckpoint as error:
        damage = error.message
        _console.print(f"[red]DAMAGED[/]  step {step}  {damage}")
    if damage or not shallow:
        _tell(settings, name, path, damage)
    return not damage


def _tell(settings: Settings, name: str, path: str, damage: str) -> None:
    """Without a cluster there is nobody to tell."""
    known = find_cluster(settings)
    if known is None or not known.grpc:
        return
    try:
        with Channel(known.grpc, access=known.access, patience_s=0.0) as channel:
            report_check(channel, name, path, damage)
    except StrataError as error:
        _console.print(f"[yellow]the cluster at {known.grpc} was not told: {error.message}[/]")
