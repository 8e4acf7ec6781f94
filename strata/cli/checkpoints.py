"""`strata checkpoints`: list, look at, verify, pin and remove checkpoints, from the cluster or from a store alone."""

from typing import Annotated, Any

import typer
from rich.console import Console

from strata.cli.cluster import cluster_rows
from strata.cli.options import DataDir, Json, reach
from strata.cli.show import Column, ago, number, show_rows, size
from strata.cli.verify import verify
from strata.client.rest import Rest
from strata.types.checkpoints import CheckpointInfo
from strata.types.plain import to_plain

__all__ = ["add_to"]

Path = Annotated[str, typer.Argument(help="Folder or bucket of the checkpoints, such as s3://bucket/run.")]
Step = Annotated[int, typer.Argument(help="The step, from `strata checkpoints ls PATH`.")]
All = Annotated[bool, typer.Option("--all", help="Also those of the cluster that are removed by now.")]

_console = Console(highlight=False, soft_wrap=True)


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="List, verify, pin, remove, export and import checkpoints.", invoke_without_command=True)
    group.callback()(checkpoints)
    for command in (ls, show, verify, pin, unpin, rm):
        group.command()(command)
    group.command("export")(export_model)
    group.command("import")(import_model)
    app.add_typer(group, name="checkpoints")


def checkpoints(context: typer.Context, data_dir: DataDir = None, as_json: Json = False, removed: All = False) -> None:
    """List, verify, pin and remove checkpoints."""
    if context.invoked_subcommand is None:
        _show(_of_cluster(data_dir, removed=removed), as_json=as_json)


def ls(
    path: Annotated[str | None, typer.Argument(help="A folder or bucket; without it, what the cluster knows.")] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    removed: All = False,
) -> None:
    """List the checkpoints of a store, or of the running cluster."""
    if path is None:
        _show(_of_cluster(data_dir, removed=removed), as_json=as_json)
        return
    with _manager(path) as manager:
        rows = [_row(info) for info in manager.list()]
    _show(rows, as_json=as_json, empty=f"No checkpoints in {path} yet.")


def show(path: Path, step: Step) -> None:
    """Show one checkpoint: where it is, how large, by whom, with which metadata."""
    with _manager(path) as manager:
        info = manager.show(step)
    for name, value in _row(info).items():
        _console.print(f"[dim]{name:>12}[/]  {value if value is not None else '–'}")


def pin(path: Path, step: Step) -> None:
    """Keep a step whatever retention says."""
    with _manager(path) as manager:
        manager.pin(step)
    _console.print(f"step {step} is pinned")


def unpin(path: Path, step: Step) -> None:
    """Let retention decide on a step again."""
    with _manager(path) as manager:
        manager.unpin(step)
    _console.print(f"step {step} is no longer pinned")


def rm(path: Path, step: Step, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove one checkpoint for good."""
    with _manager(path) as manager:
        info = manager.show(step)
        if not yes:
            typer.confirm(f"Remove step {step} ({size(info.size_bytes)}) from {info.path}?", abort=True)
        manager.remove(step)
    _console.print(f"step {step} is removed")


def export_model(
    path: Path,
    target: Annotated[str, typer.Argument(help="Folder or bucket to write model.safetensors to.")],
    step: Annotated[int | None, typer.Option(help="The step; default: the newest.")] = None,
    part: Annotated[str | None, typer.Option(help="What the names begin with; default: the model's.")] = None,
) -> None:
    """Write a checkpoint's model as a Hugging Face folder: sharded safetensors and their index."""
    with _manager(path) as manager:
        done = manager.export(target, step, part=part)
    where = f" of {done.part}" if done.part else ""
    _console.print(f"{len(done.names)} arrays{where}, {size(done.num_bytes)}, in {len(done.files)} files in {target}")


def import_model(
    source: Annotated[
        str, typer.Argument(help="A file of torch.save or safetensors, or a folder of safetensors or DCP.")
    ],
    path: Path,
    step: Annotated[int, typer.Option(help="The step it is saved as.")] = 0,
    name: Annotated[str, typer.Option("--as", help="The part of the state that it becomes.")] = "model",
) -> None:
    """Save weights of other tools as a checkpoint, to be loaded with load(into=model)."""
    from strata.integrations.weights import read_weights

    with _manager(path) as manager:
        info = manager.save({name: read_weights(source)}, step)
    _console.print(f"step {step} in {path}: {size(info.size_bytes)}")


def _of_cluster(data_dir: DataDir, *, removed: bool) -> list[dict[str, Any]]:
    known = cluster_rows(Rest(reach(data_dir=data_dir)), "/api/checkpoints")
    return known if removed else [one for one in known if one["status"] != "removed"]


def _manager(path: str) -> Any:
    from strata.checkpoint import CheckpointManager

    reach()
    return CheckpointManager(path, rank=0, world_size=1)


def _row(info: CheckpointInfo) -> dict[str, Any]:
    """As the REST API names the fields."""
    row = to_plain(info)
    row["size"] = row.pop("size_bytes")
    return {**row, "throughput": info.throughput}


def _show(rows: list[dict[str, Any]], *, as_json: bool, empty: str = "No checkpoints yet.") -> None:
    columns: list[Column] = [
        ("step", lambda row: row["step"]),
        ("epoch", lambda row: row["epoch"]),
        ("status", lambda row: row["status"]),
        ("size", lambda row: size(row["size"])),
        ("took", lambda row: number(row.get("duration_s"), " s")),
        ("MB/s", lambda row: number(row.get("throughput"))),
        ("verified", lambda row: {True: "yes", False: "DAMAGED", None: None}[row.get("verified")]),
        ("pinned", lambda row: "yes" if row.get("pinned") else None),
        ("saved", lambda row: ago(row.get("created_at"))),
        ("path", lambda row: row["path"]),
    ]
    show_rows(rows, columns, as_json=as_json, empty=empty)
