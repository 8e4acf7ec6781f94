"""The `strata` command. Errors are one red line with what to do next; a traceback only with --debug."""

import io
import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from strata import __version__
from strata.cli.commands import Commands
from strata.errors import StrataError

__all__ = ["build", "run"]

_stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def build() -> typer.Typer:
    """The command line, with no command loaded."""
    app = typer.Typer(
        name="strata",
        cls=Commands,
        help="Run distributed training jobs and watch them live: kill anything, lose nothing, and see why.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        Console().print(f"strata {__version__}", highlight=False)
        raise typer.Exit


def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del debug, version  # read by run() and by the callback


def run() -> None:
    """The console script: turns every StrataError into one line and an exit code."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # a handshake that fails is told by us, in a sentence
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # of a terminal that is not UTF-8, as stderr is already
    try:
        build()()
    except StrataError as error:
        if "--debug" in sys.argv[1:2]:
            raise
        hint = f" [default]{escape(error.hint)}[/]" if error.hint else ""
        _stderr.print(f"[red]error:[/] [red]{escape(error.sentence)}[/]{hint}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
