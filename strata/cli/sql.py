"""`strata sql`: a question to the metric store, its answer as a table or for programs."""

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from strata.cli.options import DataDir, reach
from strata.client.rest import Rest
from strata.errors import InvalidArgument

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    app.command()(sql)


def sql(
    query: Annotated[str, typer.Argument(help="One SELECT; @FILE reads it from a file, - from the input.")],
    as_json: Annotated[bool, typer.Option("--json", help="A list of rows, for programs.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV with a line of names.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Ask metric_points, runs and logs in SQL. It can only read; at most 10,000 rows, 10 seconds and 1 GiB."""
    answer = Rest(reach(data_dir=data_dir)).post("/api/sql", {"query": _read(query)})
    names = [column["name"] for column in answer["columns"]]
    if as_json:
        json.dump([dict(zip(names, row, strict=True)) for row in answer["rows"]], sys.stdout)
        sys.stdout.write("\n")
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([names, *([_text(value) for value in row] for row in answer["rows"])])
    else:
        _print(names, answer["rows"])
    if answer["truncated"]:
        Console(stderr=True).print(f"There are more: these are the first {len(answer['rows']):,} rows.")


def _read(query: str) -> str:
    if query == "-":
        return sys.stdin.read()
    if not query.startswith("@"):
        return query
    try:
        return Path(query[1:]).read_text()
    except OSError as error:
        raise InvalidArgument(f"{query[1:]} cannot be read: {error.strerror}") from None


def _print(names: list[str], rows: list[list[Any]]) -> None:
    table = Table(*names, box=None, pad_edge=False, header_style="dim")
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    Console(highlight=False, markup=False).print(table)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
