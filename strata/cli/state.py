"""`strata state dump`: what the coordinator knows, as JSON, from its journal. Works while it runs, too."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from strata.cli.options import DataDir, prepare
from strata.errors import NotFound

__all__ = ["add_to", "read_state"]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Inspect the coordinator's durable state.", no_args_is_help=True)
    group.command()(dump)
    app.add_typer(group, name="state")


def dump(data_dir: DataDir = None) -> None:
    """Print the whole state as JSON: workers, tasks, datasets, checkpoints, generations."""
    settings = prepare(data_dir=data_dir)
    Console().print_json(json.dumps(read_state(settings.data_dir)))


def read_state(data_dir: Path) -> dict[str, Any]:
    """Replays the journal read-only, as a start would."""
    from strata.clock import SystemClock
    from strata.cluster.snapshot import dump_cluster
    from strata.coordinator.engine.snapshots import Snapshots
    from strata.coordinator.journal.sqlite import read_journal
    from strata.coordinator.state.cluster import ClusterState, StateConfig
    from strata.coordinator.state.now import read_clock

    folder = data_dir / "coordinator"
    if not (folder / "journal.db").exists():
        raise NotFound(f"there is no journal in {folder}", hint="Name the folder of `strata up` with --data-dir.")
    try:
        stored = read_journal(folder)
    except sqlite3.Error as error:
        raise NotFound(f"the journal in {folder} cannot be read: {error}") from None
    state = ClusterState(StateConfig())
    Snapshots(state).restore(stored, read_clock(SystemClock()))
    return {"seq": stored.last_seq, **dump_cluster(state.cluster)}
