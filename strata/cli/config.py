"""`strata config show`: the settings in force and where each comes from, secrets masked."""

import json
import os

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from strata.cli.options import Json
from strata.config import Settings, dotenv_variables, load_settings, masked, variables

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Look at the settings.", no_args_is_help=True)
    group.command()(show)
    app.add_typer(group, name="config")


def show(as_json: Json = False) -> None:
    """Print every setting in force, and which variable or file set it."""
    settings = load_settings()
    values = masked(settings)
    if as_json:
        Console().print_json(json.dumps(values))
        return
    table = Table("setting", "value", "from")
    for name, value in values.items():
        table.add_row(name, Text(str(value)), _source(settings, name))
    Console().print(table)


def _source(settings: Settings, name: str) -> str:
    if name not in settings.given:
        return "[dim]default[/]"
    for place, known in (("", os.environ), (".env: ", dotenv_variables())):
        found = next((variable for variable in variables(name) if known.get(variable)), None)
        if found:
            return place + found
    return "strata.toml"
